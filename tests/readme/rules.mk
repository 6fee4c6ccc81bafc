# The example of the README compiles and runs against a server.
SUITES += tests/readme/example.sh
