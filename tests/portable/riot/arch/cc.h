/* SPDX-License-Identifier: Apache-2.0 */
/* What lwIP asks for is as its own. */
