package workload

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/refdata"
)

// The experiment of the reference on autoscaling: one training on 1 to 16 nodes of 4 devices, looked at each minute, half a minute of
// pause at each change.
const (
	scaledNodes   = 16
	scaledDevices = 4
	scaledTick    = 60.0
	scaledPause   = 30.0
)

// scaled is how fast a training is in an epoch on so many devices.
type scaled struct{ throughput, goodput, efficiency float64 }

// scaledCurves are those of an application, by epoch and devices: at the batch of the most goodput, and at that of the most samples.
func scaledCurves(p *profile) (best, largest [][]scaled) {
	for e := range p.progress {
		var byGoodput, byThroughput []scaled
		for k := 1; k <= scaledNodes*scaledDevices; k++ {
			var g, th scaled
			if k == 1 || k%scaledDevices == 0 {
				g, th = p.scaled(e, k)
			}
			byGoodput, byThroughput = append(byGoodput, g), append(byThroughput, th)
		}
		best, largest = append(best, byGoodput), append(largest, byThroughput)
	}
	return best, largest
}

func (p *profile) scaled(epoch, k int) (best, largest scaled) {
	from, to := math.Max(float64(p.batch.Initial), float64(p.batch.MinPerDevice*k)), float64(p.batch.Max)
	for i := range 50 {
		total := from * math.Pow(to/from, float64(i)/49)
		local := total / float64(k)
		s := int(math.Ceil(local/float64(p.batch.MaxPerDevice)-1e-8)) - 1
		perDevice := int(math.Ceil(local/float64(s+1) - 1e-8))
		if perDevice < p.batch.MinPerDevice || perDevice > p.batch.MaxPerDevice {
			continue
		}
		batch := k * perDevice * (s + 1)
		time, ok := p.stepTime(consolidated(k, scaledDevices), perDevice)
		g, known := p.gradients(min(batch, p.batch.Max), epoch)
		if !ok || !known {
			continue
		}
		is := scaled{throughput: float64(batch) / time.total(s)}
		is.efficiency = goodput.Gradients{SquaredNorm: g.square, Variance: g.variance}.Efficiency(float64(batch) / float64(p.batch.Initial))
		is.goodput = is.throughput * is.efficiency
		if is.goodput > best.goodput {
			best = is
		}
		if is.throughput > largest.throughput {
			largest = is
		}
	}
	return best, largest
}

type scaledRun struct {
	Policy         string       `json:"policy"`
	Hours          float64      `json:"hours"`
	NodeHours      float64      `json:"node_hours"`
	MeanEfficiency float64      `json:"mean_efficiency"`
	Restarts       int          `json:"restarts"`
	Nodes          [][2]float64 `json:"nodes"`
}

// runScaled trains on nodes as a rule wants, which is asked each minute unless nodes are awaited. They come after a delay in seconds.
func runScaled(p *profile, curves [][]scaled, nodes int, delay float64, want func(epoch, nodes int, progress float64) int) (run scaledRun) {
	progress, now, pause, epoch, efficiency := 0.0, 0.0, scaledPause, 0, 0.0
	asked, ready := nodes, 0.0
	run.Nodes = [][2]float64{{0, float64(nodes)}}
	for tick := 1.0; epoch < len(p.progress); {
		if asked > nodes && now >= ready {
			nodes, pause = asked, scaledPause
			run.Restarts++
			run.Nodes = append(run.Nodes, [2]float64{math.Round(now/36) / 100, float64(nodes)})
		}
		until := tick * scaledTick
		if asked > nodes {
			until = min(until, ready)
		}
		left, c := until-now, curves[epoch][nodes*scaledDevices-1]
		switch d := min(pause, left); {
		case d > 0:
			pause, now, run.NodeHours = pause-d, now+d, run.NodeHours+d*float64(nodes)
		case left > 0:
			rate := c.goodput / float64(p.batch.Initial)
			if d = min(left, (p.progress[epoch]-progress)/rate); d < left {
				progress = p.progress[epoch]
				epoch++
			} else {
				progress += d * rate
			}
			now, run.NodeHours, efficiency = now+d, run.NodeHours+d*float64(nodes), efficiency+d*c.efficiency
		case now < tick*scaledTick:
		default:
			if tick++; asked == nodes {
				asked, ready = max(want(epoch, nodes, progress), nodes), now+delay
			}
		}
	}
	run.Hours, run.NodeHours, run.MeanEfficiency = now/3600, run.NodeHours/3600, efficiency/now
	return run
}

// leastCost is the certified least node-hours of a training that takes so long: cost and time, weighed by any value of time, fall
// apart into those of the epochs.
func leastCost(p *profile, curves [][]scaled, hours float64) float64 {
	dual := func(value float64) (sum float64) {
		before := 0.0
		for e, end := range p.progress {
			least := math.Inf(1)
			for n := 1; n <= scaledNodes; n++ {
				rate := curves[e][n*scaledDevices-1].goodput / float64(p.batch.Initial)
				least = min(least, (float64(n)+value)*(end-before)/rate/3600)
			}
			sum, before = sum+least, end
		}
		return sum - value*hours
	}
	low, high := 0.0, 1000.0 // it is concave
	for range 100 {
		if a, b := low+(high-low)/3, high-(high-low)/3; dual(a) < dual(b) {
			low = a
		} else {
			high = b
		}
	}
	return dual(low)
}

func readScaled(t *testing.T) (p *profile, best, largest [][]scaled) {
	reader := &profileReader{folder: refdata.Path(t, "data", "pollux-osdi21")}
	if p = reader.read(t.Context(), "imagenet"); p == nil {
		t.Fatal(reader.problems)
	}
	best, largest = scaledCurves(p)
	return p, best, largest
}

// ramped asks the published rule. What is ideal is one device, or one node.
func ramped(r goodput.Ramp, curves [][]scaled, ideal int, what func(scaled) float64) func(epoch, nodes int, _ float64) int {
	return func(e, nodes int, _ float64) int {
		device := func(k int) float64 { return what(curves[e][k-1]) / float64(k) }
		return r.Nodes(nodes, 1, scaledNodes, func(n int) float64 { return device(n*scaledDevices) / device(ideal) })
	}
}

func TestAutoscalingRuns(t *testing.T) {
	p, best, largest := readScaled(t)
	text, err := os.ReadFile(refdata.Path(t, "reference", "autoscaling-imagenet", "runs.json"))
	if err != nil {
		t.Fatal(err)
	}
	var told struct {
		Runs  []scaledRun
		Bound []struct {
			Time      float64 `json:"time_pct"`
			NodeHours float64 `json:"node_hours"`
		} `json:"lower_bound"`
	}
	if err := json.Unmarshal(text, &told); err != nil {
		t.Fatal(err)
	}
	byGoodput, byThroughput := func(s scaled) float64 { return s.goodput }, func(s scaled) float64 { return s.throughput }
	var whole float64
	for _, want := range told.Runs {
		curves, nodes, delay := best, 1, 0.0
		r, ideal := goodput.Ramp{Up: 2. / 3, To: .5}, 1
		rule := func(_, nodes int, _ float64) int { return nodes }
		scan := func(format string, to ...any) bool {
			n, _ := fmt.Sscanf(want.Policy, format, to...)
			return n == len(to)
		}
		if _, after, found := strings.Cut(want.Policy, "provision "); found {
			_, _ = fmt.Sscanf(after, "%f s", &delay)
		}
		switch {
		case scan("fixed %d nodes", &nodes):
		case strings.HasPrefix(want.Policy, "throughput"):
			rule = ramped(r, largest, ideal, byThroughput)
		case scan("goodput U=%f L=%f", &r.Up, &r.To):
			if r.Up == 0.667 {
				r.Up = 2. / 3
			}
			if strings.HasSuffix(want.Policy, "ideal=1 node") {
				ideal = scaledDevices
			}
			rule = ramped(r, best, ideal, byGoodput)
		default:
			t.Fatalf("no such policy here: %q", want.Policy)
		}
		if strings.Contains(want.Policy, "throughput") {
			curves = largest
		}
		got := runScaled(p, curves, nodes, delay, rule)
		if want.Policy == "throughput U=2/3 L=1/2" { // 16 nodes at once
			whole = got.Hours
		}
		same := func(a, b, within float64) bool { return math.Abs(a-b) <= within }
		if !same(got.Hours, want.Hours, 6e-5) || !same(got.NodeHours, want.NodeHours, 6e-4) || !same(got.MeanEfficiency, want.MeanEfficiency, 6e-5) ||
			got.Restarts != want.Restarts || !slices.Equal(got.Nodes, want.Nodes) {
			t.Errorf("%s: %+v, want %+v", want.Policy, got, want)
		}
		if least := leastCost(p, best, got.Hours); got.NodeHours < least*(1-1e-12) {
			t.Errorf("%s: %v node hours, want the least of %v h, %v", want.Policy, got.NodeHours, got.Hours, least)
		}
	}
	for _, b := range told.Bound {
		if got := leastCost(p, best, whole*(1+b.Time/100)); math.Abs(got-b.NodeHours) > 0.02 {
			t.Errorf("at %+v %% of time at least %v node hours, want %v", b.Time, got, b.NodeHours)
		}
	}
}

// By the value of time alone, a training is the cheaper the longer it takes, and near the least that it can cost in that time.
func TestMarginalScaling(t *testing.T) {
	p, best, _ := readScaled(t)
	before := scaledRun{Hours: math.Inf(1)}
	for _, value := range []float64{0, 1, 2, 3, 4, 6, 12, 48} {
		got := runScaled(p, best, 1, 0, func(e, nodes int, progress float64) int {
			rate := func(n int) float64 { return best[e][n*scaledDevices-1].goodput / float64(p.batch.Initial) }
			return goodput.Marginal(nodes, 1, scaledNodes, value, scaledPause, (p.progress[len(p.progress)-1]-progress)/rate(nodes), func(nodes int) float64 { return float64(nodes) }, rate)
		})
		least := leastCost(p, best, got.Hours)
		t.Logf("an hour is worth those of %v nodes: %.1f node hours, %.2f h, %.1f %% above the least, %v", value, got.NodeHours, got.Hours, 100*(got.NodeHours/least-1), got.Nodes)
		if got.NodeHours < least || got.NodeHours > 1.04*least {
			t.Errorf("an hour is worth those of %v nodes: %v node hours, want from %v to 4 %% more", value, got.NodeHours, least)
		}
		if got.Hours > before.Hours || got.NodeHours < before.NodeHours {
			t.Errorf("an hour is worth those of %v nodes: %+v, after %+v for less", value, got, before)
		}
		before = got
	}
}
