# SPDX-License-Identifier: Apache-2.0
# A stand-in for the Application.mk of NuttX's apps: it compiles what an application's Makefile lists,
# found by VPATH, into $(OUT), and makes a program of the host's of each main(), which NuttX renames.
# What it compiles is noted in $(OUT)/sources.
PROGNAME := $(subst ",,$(PROGNAME))
OBJECTS := $(CSRCS:%.c=$(OUT)/%.o)
PROGRAMS := $(addprefix $(OUT)/,$(PROGNAME))
main_of = $(word $2,$(MAINSRC))

.PHONY: all context distclean
all: $(PROGRAMS)
context distclean::
	@:

$(OUT)/%.o: %.c
	@echo $(realpath $<) >>$(OUT)/sources
	$(CC) $(CFLAGS) -c -o $@ $<

define program
$(OUT)/$1: $(word $2,$(MAINSRC)) $(OBJECTS)
	@echo $$(realpath $$<) >>$(OUT)/mains
	echo 'int $1_main(int, char **); int main(int argc, char **argv) { return $1_main(argc, argv); }' >$(OUT)/$1.c
	$(CC) $(CFLAGS) -Dmain=$1_main -c -o $(OUT)/$1.main.o $$<
	$(CC) -o $$@ $(OUT)/$1.c $(OUT)/$1.main.o $(OBJECTS) -pthread
	echo '$1 $(word $2,$(PRIORITY)) $(word $2,$(STACKSIZE)) $(MODULE)' >>$(OUT)/registered
endef
$(foreach number,$(shell seq 1 $(words $(PROGNAME))),$(eval $(call program,$(word $(number),$(PROGNAME)),$(number))))
