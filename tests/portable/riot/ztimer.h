#include "riot.h"
