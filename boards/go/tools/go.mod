module example.org/fairlock/tools

go 1.19
