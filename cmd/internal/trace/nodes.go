package trace

import (
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/quartet-sched/quartet/core/workload"
)

func (a *app) traceNodesCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "nodes FILE",
		Short: "Write the cluster of an openb node list as a config",
		Long: `Writes section cluster of a config to stdout, with the nodes counted by accelerator type and size. FILE is a node list of
Alibaba's openb cluster, such as openb_node_list_gpu_node.csv. The result may be laid over a config with -f.`,
		Example: `  quartet trace nodes openb_node_list_gpu_node.csv > openb.yaml
  quartet simulate -f mine.yaml -f openb.yaml`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			if err := a.RefuseOtherFormats(c, "YAML"); err != nil {
				return err
			}
			counts, err := workload.ReadOpenBNodes(c.Context(), args[0])
			if err != nil {
				return err
			}
			e := yaml.NewEncoder(a.Stdout)
			e.SetIndent(2)
			return e.Encode(clusterOf(counts))
		},
	}
}

// clusterFile is section cluster of a config, as it is written.
type clusterFile struct {
	Cluster struct {
		Nodes []nodeGroup `yaml:"nodes"`
	} `yaml:"cluster"`
}

type nodeGroup struct {
	Name        string `yaml:"name"`
	Count       int    `yaml:"count"`
	Accelerator string `yaml:"accelerator"`
	Devices     int    `yaml:"devices"`
}

// clusterOf names nodes after their type, and after their size too where it is not the only one.
func clusterOf(counts []workload.NodeCount) clusterFile {
	var file clusterFile
	for _, n := range counts {
		name := strings.ToLower(n.Accelerator)
		if slices.ContainsFunc(counts, func(o workload.NodeCount) bool { return o.Accelerator == n.Accelerator && o != n }) {
			name += "-" + strconv.Itoa(n.Devices)
		}
		file.Cluster.Nodes = append(file.Cluster.Nodes, nodeGroup{name, n.Nodes, n.Accelerator, n.Devices})
	}
	return file
}
