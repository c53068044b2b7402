package workload

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"
)

// fuzzReader checks that any file is either refused with positioned problems, or read into jobs in order.
func fuzzReader(f *testing.F, name string, check func(*testing.T, *Workload)) {
	reader := readers[name]
	f.Add([]byte(reader.example))
	f.Add([]byte("\ufeff" + reader.example + "\r\n\"x"))
	f.Add([]byte("\x1f\x8b"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		w, err := reader.read(in)
		if err != nil {
			positioned(t, err)
			return
		}
		checkWorkload(t, w)
		check(t, w)
	})
}

func checkWorkload(t *testing.T, w *Workload) {
	t.Helper()
	if len(w.Jobs) == 0 || !inOrder(w.Jobs, inSubmissionOrder) {
		t.Errorf("%d jobs, sorted: %v", len(w.Jobs), inOrder(w.Jobs, inSubmissionOrder))
	}
	for i := range w.Jobs {
		s := &w.Jobs[i].Spec
		if int(s.ID) != i || s.Name == "" || !(s.SubmitSeconds >= 0) || !(s.TotalWork > 0) ||
			s.MinReplicas < 1 || s.MinReplicas > s.Requested || s.Requested > s.MaxReplicas || !(s.Weight > 0) {
			t.Errorf("job %d: %+v", i, s)
		}
	}
}

// writesBack checks that the workload survives being written as CSV.
func writesBack(t *testing.T, w *Workload) {
	var b bytes.Buffer
	if err := WriteCSV(&b, w); err != nil {
		t.Fatal(err)
	}
	got, err := readString(readCSV, b.String())
	if err != nil {
		t.Fatalf("%v\n%s", err, b.String())
	}
	if diff := diffJobs(w.Jobs, got.Jobs); diff != "" {
		t.Errorf("jobs (-want +got):\n%s", diff)
	}
}

func FuzzCSV(f *testing.F)       { fuzzReader(f, "csv", writesBack) }
func FuzzPhilly(f *testing.F)    { fuzzReader(f, "philly", writesBack) }
func FuzzTiresias(f *testing.F)  { fuzzReader(f, "tiresias", writesBack) }
func FuzzBlox(f *testing.F)      { fuzzReader(f, "blox", writesBack) }
func FuzzOpenB(f *testing.F)     { fuzzReader(f, "openb", writesBack) }
func FuzzShockwave(f *testing.F) { fuzzReader(f, "shockwave", writesBack) }

func FuzzPollux(f *testing.F) {
	folder := toyProfile(f)
	f.Add([]byte(polluxHeader + "toy-1,60,toy,2,10\ntoy-0,60,toy,1,15\n"))
	f.Add([]byte(polluxHeader + "a,0,toys,1,10\nb,0,toy,99,9\n"))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		w, err := readPollux(context.Background(), in, newMeasuredModels(folder, []string{"toy"}, false))
		if err != nil {
			positioned(t, err)
			return
		}
		checkWorkload(t, w)
		for i := range w.Jobs {
			job := &w.Jobs[i]
			shape := consolidated(job.Spec.Requested, profileDevicesPerNode)
			if rate := job.Model.Rate(0, Running{Shape: shape, Replicas: job.Spec.Requested}); !(rate > 0) {
				t.Errorf("job %+v runs at a rate of %v", job.Spec, rate)
			}
		}
	})
}

func FuzzElastic(f *testing.F) {
	folder := toyProfile(f)
	for _, rows := range []string{"60,toy,80,15\n0,toy,8e1,20\n", "0,toys,1,10\n-1,toy,,9\n", "0,toy,1,12\n0,toy,1,12\n"} {
		f.Add(true, []byte(elasticHeader+rows))
		f.Add(false, []byte(elasticHeader+rows))
	}
	f.Fuzz(func(t *testing.T, random bool, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		c := ElasticConfig{Profiles: folder, Batch: batchSmallest, Truth: truthProgress, Placed: placedMeasured, MostDevices: 3}
		if random {
			c.Batch = batchRandom
		}
		w, err := newElasticLoader(c, []string{"toy"}).read(context.Background(), in)
		if err != nil {
			positioned(t, err)
			return
		}
		checkWorkload(t, w)
		for i := range w.Jobs {
			job := &w.Jobs[i]
			shape := consolidated(job.Spec.Requested, profileDevicesPerNode)
			if rate := job.Model.Rate(0, Running{Shape: shape, Replicas: job.Spec.Requested}); !(rate > 0) {
				t.Errorf("job %+v runs at a rate of %v", job.Spec, rate)
			}
		}
	})
}

func FuzzGavel(f *testing.F) {
	f.Add(uint8(0), []byte(toyStream))
	f.Add(uint8(1), []byte(toyTrace))
	f.Add(uint8(2), []byte(toyPhilly))
	f.Add(uint8(0), []byte(toyStreamHeader+"0,A3C,2,1e11,1e15,1e11\n"))
	f.Fuzz(func(t *testing.T, format uint8, content []byte) {
		c := GavelConfig{Format: []string{gavelStream, gavelTrace, gavelPhilly}[format%3], JobsPerHour: float64(format) / 3, Jobs: int(format) / 3}
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		w, err := c.read(in, toyGavel(t, toySpeeds))
		if err != nil {
			positioned(t, err)
			return
		}
		checkWorkload(t, w)
	})
}

// FuzzGavelSpeeds reads throughputs in either form.
func FuzzGavelSpeeds(f *testing.F) {
	f.Add([]byte(toySpeeds))
	f.Add([]byte(toyDocument))
	f.Add([]byte(`{"": {}, "v100": {"('A3C', 9999999999)": {"null": 1e400}}}`))
	f.Fuzz(func(t *testing.T, content []byte) {
		in, err := newInput("t.csv", content)
		if err != nil {
			positioned(t, err)
			return
		}
		speeds, err := readGavelSpeeds(in)
		if err != nil {
			positioned(t, err)
			return
		}
		for task, speed := range speeds.byTask {
			if task.replicas != speed.replicas || len(speed.rates) != len(speed.stepTimes.Types) {
				t.Errorf("%+v has %+v", task, speed)
			}
		}
	})
}

// FuzzProfile spoils one file of a profile at a time.
func FuzzProfile(f *testing.F) {
	files := []string{
		"traces/toy/placements.csv", "traces/toy/validation-10.csv", "delaunay/toy-points.csv", "delaunay/toy-simplices.csv",
	}
	f.Add(uint8(0), []byte("placement,local_bsz,step_time,sync_time\n1,2,0.5,0\n99999999,2,1e-300,0\n"))
	f.Add(uint8(1), []byte("progress,iteration,metric,grad_sqr,grad_var\n1e-300,0,0,1e300,1e300\n"))
	f.Add(uint8(2), []byte("num_nodes,num_replicas,local_bsz,step_time,sync_time\n1000000,0,1000000,1,0\n"))
	f.Add(uint8(3), []byte("0,1,2,3\n0,0,0,0\n7,6,5,4\n"))
	folder := toyProfile(f)
	f.Fuzz(func(t *testing.T, which uint8, content []byte) {
		path := filepath.Join(folder, files[int(which)%len(files)])
		sound, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		writeFile(t, string(content), path)
		defer writeFile(t, string(sound), path)
		reader := profileReader{folder: folder}
		p := reader.read(context.Background(), "toy")
		if err := reader.problems.Err(); err != nil {
			positioned(t, err)
			return
		}
		if m := newMeasuredModel(p, p.batch.Initial, false); m != nil {
			m.Rate(0, Running{Shape: []int{1, 1, 1, 1, 1}, Replicas: 5})
		}
	})
}
