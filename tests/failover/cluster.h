/* SPDX-License-Identifier: Apache-2.0 */
/* What rig.c, cluster.c and the benchmarks share. */
#ifndef CLUSTER_H
#define CLUSTER_H

#include "rig.h"

/*
 * Begins a test with a rig that has no nodes yet; adds a node. Both end the suite when that fails.
 */
void rig_start(struct rig *rig, const struct rig_options *options, bool cluster);
void node_start(struct rig *rig, int index, bool sentinel);

/* Gives a range of slots to a node of a cluster that is being made. */
bool node_take_slots(struct node *node, int first, int last);

/* It is neither dead nor frozen. */
bool node_answers(const struct node *node);

#endif
