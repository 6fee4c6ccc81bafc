module example.org/fairlock

go 1.19
