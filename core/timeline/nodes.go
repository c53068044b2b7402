package timeline

import (
	"bufio"
	"strconv"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/metrics"
)

const nodesHeader = "node,accelerator,devices,start_s,end_s,health\n"

// nodeBooks say which node was in which health when.
type nodeBooks struct {
	out     *bufio.Writer
	cluster *core.Cluster
	nodes   [][]change // by NodeID
}

// change is the health of a node from a moment on.
type change struct {
	at     float64
	health core.Health
}

func newNodeBooks(w *bufio.Writer, c *core.Cluster) *nodeBooks {
	b := &nodeBooks{out: w, cluster: c, nodes: make([][]change, len(c.Nodes))}
	for i := range c.Nodes {
		b.nodes[i] = []change{{0, c.Nodes[i].Health}}
	}
	return b
}

func (b *nodeBooks) set(id core.NodeID, h core.Health, at float64) {
	last := &b.nodes[id][len(b.nodes[id])-1]
	switch {
	case last.health == h:
	case last.at == at:
		last.health = h
	default:
		b.nodes[id] = append(b.nodes[id], change{at, h})
	}
}

// add takes in a node that joined, unless it was there when the run began.
func (b *nodeBooks) add(e *core.Event) {
	if int(e.Node) == len(b.nodes) {
		b.nodes = append(b.nodes, []change{{e.AtSeconds, e.Added.Health}})
	}
}

// finish writes the rows of every node up to the end of the run. One that is gone has no row from then on.
func (b *nodeBooks) finish(end float64) error {
	for i, changes := range b.nodes {
		for k := range changes {
			until := end
			if k+1 < len(changes) {
				until = min(end, changes[k+1].at)
			}
			if k > 0 && changes[k].at >= until || changes[k].health == core.Gone {
				continue
			}
			if err := b.write(&b.cluster.Nodes[i], changes[k], until); err != nil {
				return err
			}
		}
	}
	return nil
}

func (b *nodeBooks) write(n *core.Node, c change, until float64) error {
	row := metrics.AppendCell(b.out.AvailableBuffer(), n.Name)
	row = append(row, ',')
	row = metrics.AppendCell(row, b.cluster.Accelerators[n.Accelerator])
	row = append(row, ',')
	row = strconv.AppendInt(row, int64(n.Devices), 10)
	row = append(row, ',')
	row = metrics.AppendNumber(row, c.at)
	row = append(row, ',')
	row = metrics.AppendNumber(row, until)
	row = append(row, ',')
	row = append(row, c.health.String()...)
	_, err := b.out.Write(append(row, '\n'))
	return err
}
