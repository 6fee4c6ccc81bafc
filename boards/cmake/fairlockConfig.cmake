# What find_package(fairlock) reads after `make install`; the folder that it stands in may be moved
# with the rest. It gives fairlock::fairlock, and, if the installed library was made with
# TLS=openssl, with COMPONENTS openssl fairlock::openssl.
include(CMakeFindDependencyMacro)

# /lib may be a link to /usr/lib, whose headers are in /usr/include.
get_filename_component(fairlock_prefix "${CMAKE_CURRENT_LIST_DIR}" REALPATH)
get_filename_component(fairlock_prefix "${fairlock_prefix}/../../.." ABSOLUTE)

find_dependency(Threads)
if(NOT TARGET fairlock::fairlock)
  add_library(fairlock::fairlock STATIC IMPORTED)
  set_target_properties(fairlock::fairlock PROPERTIES
    IMPORTED_LOCATION "${fairlock_prefix}/lib/liblock.a"
    IMPORTED_LINK_INTERFACE_LANGUAGES C
    INTERFACE_INCLUDE_DIRECTORIES "${fairlock_prefix}/include/fairlock"
    INTERFACE_LINK_LIBRARIES Threads::Threads)
endif()

foreach(component ${fairlock_FIND_COMPONENTS})
  if(component STREQUAL openssl AND EXISTS "${fairlock_prefix}/include/fairlock/port_openssl.h")
    find_dependency(OpenSSL 1.1.1)
    if(NOT TARGET fairlock::openssl)
      add_library(fairlock::openssl INTERFACE IMPORTED)
      set_target_properties(fairlock::openssl PROPERTIES
        INTERFACE_LINK_LIBRARIES "fairlock::fairlock;OpenSSL::SSL;OpenSSL::Crypto")
    endif()
    set(fairlock_openssl_FOUND TRUE)
  elseif(fairlock_FIND_REQUIRED_${component})
    set(fairlock_FOUND FALSE)
    set(fairlock_NOT_FOUND_MESSAGE
      "the installed fairlock has no ${component}; for openssl, install it by `make install TLS=openssl`")
  endif()
endforeach()
