package inflation_test

import (
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/internal/refdata"
	"github.com/quartet-sched/quartet/placement/score"
	"github.com/quartet-sched/quartet/placement/score/inflation"
)

// published lists are read; the others of the paper are made of them, as their names say.
var (
	publishedLists = []string{"default", "cpu050", "cpu250", "gpushare100", "gpuspec33", "multigpu50"}
	madeLists      = []string{
		"cpu100", "cpu200", "gpushare40", "gpushare60", "gpushare80", "gpuspec10", "gpuspec20", "gpuspec25", "multigpu20", "multigpu30", "multigpu40",
	}
)

// traceOf is a published workload, or one that is made of them.
func traceOf(t testing.TB, name string, division score.Division) *inflation.Trace {
	t.Helper()
	if slices.Contains(publishedLists, name) {
		return traceFrom(tasksOf(t, name), nodesOf(t), division)
	}
	return traceFrom(makeList(t, name), nodesOf(t), division)
}

// nodesOf reads the published nodes.
func nodesOf(t testing.TB) []workload.OpenBNode {
	t.Helper()
	nodes, err := workload.ReadOpenBNodeList(t.Context(), refdata.Path(t, "data", "alibaba-openb-2023", "openb_node_list_gpu_node.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	return nodes
}

// tasksOf reads a published list.
func tasksOf(t testing.TB, name string) []workload.OpenBTask {
	t.Helper()
	path := filepath.Join("fgd", "openb_pod_list_"+name+".csv.gz")
	if name == "default" {
		path = filepath.Join("alibaba-openb-2023", "openb_pod_list_default.csv.gz")
	}
	rows, err := workload.ReadOpenBTasks(t.Context(), refdata.Path(t, "data", path))
	if err != nil {
		t.Fatal(err)
	}
	return rows
}

// makeList draws tasks of the default list again until those of a kind have so many hundredths: of the tasks for cpu, of the
// devices asked for by gpushare and multigpu, and of the tasks with devices that name types for gpuspec.
func makeList(t testing.TB, name string) []workload.OpenBTask {
	t.Helper()
	at := strings.IndexAny(name, "0123456789")
	percent, err := strconv.Atoi(name[at:])
	if err != nil {
		t.Fatal(err)
	}
	random, rows := rand.New(rand.NewPCG(1, uint64(percent))), tasksOf(t, "default")
	var of func(*workload.OpenBTask) bool
	weight := func(r *workload.OpenBTask) int { return r.Devices * r.Milli }
	switch name[:at] {
	case "cpu": // thousandths
		percent /= 10
		of, weight = func(r *workload.OpenBTask) bool { return r.Devices == 0 }, func(*workload.OpenBTask) int { return 1 }
	case "gpushare":
		of = func(r *workload.OpenBTask) bool { return r.Devices == 1 && r.Milli < 1000 }
	case "multigpu":
		of = func(r *workload.OpenBTask) bool { return r.Devices > 1 }
	case "gpuspec":
		rows = tasksOf(t, "gpuspec33")
		return untyped(rows, percent, random)
	}
	var kind []workload.OpenBTask
	for _, r := range rows {
		if of(&r) {
			kind = append(kind, r)
		}
	}
	part := func() (in, all int) {
		for i := range rows {
			all += weight(&rows[i])
			if of(&rows[i]) {
				in += weight(&rows[i])
			}
		}
		return in, all
	}
	in, all := part()
	more := in*100 < all*percent
	for n := 0; (in*100 < all*percent) == more; n++ {
		if more {
			clone := kind[random.IntN(len(kind))]
			clone.Name += "-" + strconv.Itoa(n)
			rows = append(rows, clone)
			in, all = in+weight(&clone), all+weight(&clone)
			continue
		}
		i := random.IntN(len(rows))
		if of(&rows[i]) {
			in, all = in-weight(&rows[i]), all-weight(&rows[i])
			rows = slices.Delete(rows, i, i+1)
		}
	}
	return rows
}

// untyped takes the types from tasks until so many hundredths of those with devices name some.
func untyped(rows []workload.OpenBTask, percent int, random *rand.Rand) []workload.OpenBTask {
	typed, all := 0, 0
	for _, r := range rows {
		if r.Devices > 0 {
			all++
		}
		if r.Types != "" {
			typed++
		}
	}
	for typed*100 > all*percent {
		if r := &rows[random.IntN(len(rows))]; r.Types != "" {
			r.Types = ""
			typed--
		}
	}
	return rows
}
