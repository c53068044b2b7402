// Package timeline records who held which devices when, how the use of the cluster changed and how jobs trained: timeline.csv,
// nodes.csv, usage.csv, training.csv and efficiency.csv. It reads these files back, and writes them in the formats of other
// tools. docs/timeline.md defines every field.
package timeline
