package workload

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"math"
	"os"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/goodput"
	"github.com/quartet-sched/quartet/internal/refdata"
)

func referenceProfiles(t testing.TB) map[string]*profile {
	t.Helper()
	reader := profileReader{folder: refdata.Path(t, "data", "pollux-osdi21")}
	names, err := reader.applications()
	if err != nil {
		t.Fatal(err)
	}
	profiles := map[string]*profile{}
	for _, name := range names {
		profiles[name] = reader.read(context.Background(), name)
	}
	if err := reader.problems.Err(); err != nil {
		t.Fatal(err)
	}
	return profiles
}

// relativeError is how far got is from want.
func relativeError(got, want float64) float64 {
	if got == want {
		return 0
	}
	return math.Abs(got-want) / math.Abs(want)
}

// goldenLookups is the part of golden.json that concerns profiles.
type goldenLookups struct {
	Apps map[string]struct {
		Init, Max, Epochs int
		MinLocal          int `json:"min_local"`
		MaxLocal          int `json:"max_local"`
		Validated         []int
	}
	Throughput [][]any
	Epoch      [][]any
}

func readGolden(t *testing.T) goldenLookups {
	t.Helper()
	data, err := os.ReadFile(refdata.Path(t, "reference", "pollux-osdi21", "golden.json"))
	if err != nil {
		t.Fatal(err)
	}
	var golden goldenLookups
	if err := json.Unmarshal(data, &golden); err != nil {
		t.Fatal(err)
	}
	return golden
}

func TestProfileMatchesPublishedLookups(t *testing.T) {
	golden, profiles := readGolden(t), referenceProfiles(t)
	if len(golden.Throughput) != 390 || len(golden.Epoch) != 72 {
		t.Fatalf("%d step times and %d gradients", len(golden.Throughput), len(golden.Epoch))
	}
	for _, row := range golden.Throughput {
		app, perDevice := row[0].(string), int(row[2].(float64))
		var shape []int
		for _, n := range row[1].([]any) {
			shape = append(shape, int(n.(float64)))
		}
		got, ok := profiles[app].stepTime(shape, perDevice)
		if !ok || relativeError(got.step, row[3].(float64)) > 1e-12 || relativeError(got.sync, row[4].(float64)) > 1e-10 {
			t.Errorf("%s on %v at %d per device: %v, want %v", app, shape, perDevice, got, row[3:])
		}
	}
	for _, row := range golden.Epoch {
		app, batch, epoch := row[0].(string), int(row[1].(float64)), int(row[2].(float64))
		got, _ := profiles[app].gradients(batch, epoch)
		for _, pair := range [][2]float64{
			{got.square, row[3].(float64)},
			{got.variance, row[4].(float64)},
			{profiles[app].iterations(batch)[epoch], row[5].(float64)},
			{float64(len(profiles[app].progress) - 1), row[6].(float64)},
		} {
			if relativeError(pair[0], pair[1]) > 1e-12 {
				t.Errorf("%s at batch %d in epoch %d: %v, want %v", app, batch, epoch, pair[0], pair[1])
			}
		}
	}
}

func TestFixedBatchStepTimes(t *testing.T) {
	profiles := referenceProfiles(t)
	data, err := os.ReadFile(refdata.Path(t, "reference", "pollux-osdi21", "fixed-batch-throughput.csv"))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(bytes.NewReader(data)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	total := map[string]int{}
	for _, row := range rows[1:] {
		app, number := row[0], make([]float64, len(row))
		for i, cell := range row[1:] {
			if number[i+1], err = strconv.ParseFloat(cell, 64); err != nil {
				t.Fatal(err)
			}
		}
		nodes, replicas := int(number[2]), int(number[3])
		perDevice, accumulation := goodput.SplitBatch(int(number[1]), replicas, profiles[app].batch)
		if perDevice != int(number[4]) || accumulation != int(number[5]) {
			t.Errorf("%v: batch split into %d × %d", row, perDevice, accumulation+1)
			continue
		}
		shape := make([]int, nodes)
		for i := range replicas {
			shape[i%nodes]++
		}
		got, ok := profiles[app].stepTime(shape, perDevice)
		if !ok || relativeError(got.step, number[6]) > 1e-12 || relativeError(got.sync, number[7]) > 1e-10 {
			t.Errorf("%v: %v, %v", row, got, ok)
		}
		total[app]++
	}
	want := map[string]int{"bert": 390, "cifar10": 780, "deepspeech2": 660, "imagenet": 780, "ncf": 390, "yolov3": 137}
	if diff := cmp.Diff(want, total); diff != "" {
		t.Errorf("step times compared (-want +got):\n%s", diff)
	}
}

func TestProfileLimits(t *testing.T) {
	golden, profiles := readGolden(t), referenceProfiles(t)
	if len(golden.Apps) != 6 || len(profiles) != 6 {
		t.Fatalf("%d applications published, %d read", len(golden.Apps), len(profiles))
	}
	for app, want := range golden.Apps {
		p := profiles[app]
		wantBatch := core.BatchSpec{Initial: want.Init, Max: want.Max, MinPerDevice: want.MinLocal, MaxPerDevice: want.MaxLocal}
		if diff := cmp.Diff(wantBatch, p.batch); diff != "" {
			t.Errorf("%s: batch (-want +got):\n%s", app, diff)
		}
		if len(p.progress) != want.Epochs || len(p.trainings) != len(want.Validated) {
			t.Errorf("%s: %d epochs of %d trainings", app, len(p.progress), len(p.trainings))
		}
	}
}

// The publication's tuned durations are those of a constant step time, where its batch divides evenly.
func TestTunedDurations(t *testing.T) {
	profiles := referenceProfiles(t)
	cases := map[string]struct {
		replicas, batch int
		want            float64
	}{
		"bert":        {8, 384, 2480.2910247804732},
		"cifar10":     {16, 4096, 449.44677816772463},
		"imagenet":    {32, 6400, 26207.431019401552},
		"deepspeech2": {8, 320, 3500.8491632938385},
		"yolov3":      {4, 64, 12869.86397508073},
	}
	for app, tc := range cases {
		t.Run(app, func(t *testing.T) {
			m := newMeasuredModel(profiles[app], tc.batch, false)
			times := m.stepTimes.ManyNodes
			if tc.replicas <= profileDevicesPerNode {
				times = m.stepTimes.OneNode
			}
			if got := times[tc.replicas-1] * m.StepsLeft(0); relativeError(got, tc.want) > 1e-12 {
				t.Errorf("%v s, want %v", got, tc.want)
			}
		})
	}
}
