// Package timeline records who held which devices when, and how the use of the cluster changed: timeline.csv, nodes.csv,
// usage.csv and training.csv. It reads these files back, and writes them in the formats of other tools. docs/timeline.md
// defines every field.
package timeline
