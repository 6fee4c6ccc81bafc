/* SPDX-License-Identifier: Apache-2.0 */
/* Stands in for Zephyr's, as it was before 3.7: it has no names for the flags of files. */
