package workload

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/quartet-sched/quartet/core"
)

const (
	toySpeeds = "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\n" +
		"v100,LM (batch size 5),1,,,64.5,\nk80,LM (batch size 5),1,,,16,\n" +
		"v100,LM (batch size 5),1,A3C,1,30,5\nv100_unconsolidated,LM (batch size 5),1,,,64.5,\n" +
		"v100,LM (batch size 5),2,,,100,\nk80,LM (batch size 5),2,,,0.0,\nv100,A3C,1,,,8,\nv100,A3C,2,,,0,\n"
	toyDocument = `{"v100": {"('LM (batch size 5)', 1)": {"null": 64.5, "('A3C', 1)": [30, 5]}, "('LM (batch size 5)', 2)": {"null": 100},
		"('A3C', 1)": {"null": 8}, "('A3C', 2)": {"null": 0}}, "v100_unconsolidated": {"('A3C', 1)": {"null": 2}},
		"k80": {"('LM (batch size 5)', 1)": {"null": 16}, "('LM (batch size 5)', 2)": {"null": 0}}}`

	toyStreamHeader = "job_id,job_type,scale_factor,duration_v100_s,total_steps,unit_interarrival_after\n"
	toyStream       = toyStreamHeader + "0,LM (batch size 5),2,10,1000.5,0.5\n1,A3C,1,100,800,1\n"
	toyTrace        = "LM (batch size 5)\tpython main.py --batch_size 5\tlanguage_modeling\t--steps\t1\t1000\t2\t5\t-1.000000\t30\n" +
		"A3C\tpython main.py \"x\"\trl\t--max-steps\t0\t800\t1\t1\t90\t15.5\n"
	toyPhilly = "A3C\tpython main.py\t--max-steps\t0\t800\t15.5\t1\n"
)

func toyGavel(t testing.TB, speeds string) *gavelSpeeds {
	t.Helper()
	in, err := newInput("speeds", []byte(speeds))
	if err != nil {
		t.Fatal(err)
	}
	read, err := readGavelSpeeds(in)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// jobSummary is a job in short.
type jobSummary struct {
	Name, Application string
	Submit, Steps     float64
	Replicas          int
	Weight            float64
	Types, Command    string
	OnV100, OnK80     float64
}

func TestGavelReaders(t *testing.T) {
	lm := jobSummary{Application: "LM (batch size 5)", Replicas: 2, Weight: 1, Types: "v100", OnV100: 100}
	a3c := jobSummary{Application: "A3C", Steps: 800, Replicas: 1, Weight: 1, Types: "v100", OnV100: 8}
	with := func(s jobSummary, change func(*jobSummary)) jobSummary { change(&s); return s }
	for name, tc := range map[string]struct {
		config  GavelConfig
		content string
		want    []jobSummary
	}{
		"stream": {GavelConfig{Format: gavelStream, JobsPerHour: 2}, toyStream, []jobSummary{
			with(lm, func(s *jobSummary) { s.Name, s.Steps = "0", 1000.5 }),
			with(a3c, func(s *jobSummary) { s.Name, s.Submit = "1", 900 }),
		}},
		"stream at once, the first job": {GavelConfig{Format: gavelStream, Jobs: 1}, toyStream, []jobSummary{
			with(lm, func(s *jobSummary) { s.Name, s.Steps = "0", 1000.5 }),
		}},
		"stream, a size that was not measured": {GavelConfig{Format: gavelStream, Sizes: sizesScaled}, toyStreamHeader + "0,LM (batch size 5),3,10,1000.5,0.5\n", []jobSummary{
			with(lm, func(s *jobSummary) { s.Name, s.Steps, s.Replicas, s.OnV100 = "0", 1000.5, 3, 150 }),
		}},
		"trace": {GavelConfig{Format: gavelTrace}, toyTrace, []jobSummary{
			with(a3c, func(s *jobSummary) {
				s.Name, s.Submit, s.Command = "gavel-000001", 15.5, `python main.py "x" --max-steps`
			}),
			with(lm, func(s *jobSummary) {
				s.Name, s.Submit, s.Steps, s.Weight, s.Command = "gavel-000000", 30, 1000, 5, "python main.py --batch_size 5 --steps"
			}),
		}},
		"philly": {GavelConfig{Format: gavelPhilly}, toyPhilly, []jobSummary{
			with(a3c, func(s *jobSummary) { s.Name, s.Submit, s.Command = "gavel-000000", 15.5, "python main.py --max-steps" }),
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for form, speeds := range map[string]string{"table": toySpeeds, "document": toyDocument} {
				w, err := readString(func(in *input) (*Workload, error) { return tc.config.read(in, toyGavel(t, speeds)) }, tc.content)
				if err != nil {
					t.Fatal(err)
				}
				var got []jobSummary
				for i := range w.Jobs {
					s, m := &w.Jobs[i].Spec, w.Jobs[i].Model
					rate := func(accelerator string) float64 {
						return m.Rate(0, Running{Shape: []int{s.Requested}, Accelerators: []string{accelerator}, Replicas: s.Requested})
					}
					got = append(got, jobSummary{
						s.Name, s.Application, s.SubmitSeconds, s.TotalWork, s.Requested, s.Weight,
						strings.Join(s.Accelerators, " "), strings.Join(s.Command, " "), rate("v100"), rate("k80"),
					})
				}
				if diff := cmp.Diff(tc.want, got); diff != "" {
					t.Errorf("jobs by the %s (-want +got):\n%s", form, diff)
				}
			}
		})
	}
}

func TestGavelJobs(t *testing.T) {
	speed := toyGavel(t, toySpeeds).byTask[gavelTask{"LM (batch size 5)", 1}]
	job := newGavelJob("j", "LM (batch size 5)", 0, 645, speed)
	if got, want := job.Spec.StepTimes.Types, []core.TypeTimes{
		{Accelerator: "k80", OneNode: []float64{1. / 16}, ManyNodes: []float64{1. / 16}},
		{Accelerator: "v100", OneNode: []float64{1 / 64.5}, ManyNodes: []float64{1 / 64.5}},
	}; !cmp.Equal(got, want) {
		t.Errorf("step times %+v, want %+v", got, want)
	}
	for name, c := range map[string]Running{
		"on two devices":       {Shape: []int{2}, Accelerators: []string{"v100"}, Replicas: 2},
		"on another type":      {Shape: []int{1}, Accelerators: []string{"a100"}, Replicas: 1},
		"on types that differ": {Shape: []int{1, 1}, Accelerators: []string{"v100", "k80"}, Replicas: 1},
	} {
		if rate := job.Model.Rate(0, c); rate != 0 {
			t.Errorf("it runs %s, at a rate of %v", name, rate)
		}
	}
}

func TestGavelPairs(t *testing.T) {
	for form, text := range map[string]string{"table": toySpeeds, "document": toyDocument} {
		speeds := toyGavel(t, text)
		lm := newGavelJob("l", "LM (batch size 5)", 0, 645, speeds.byTask[gavelTask{"LM (batch size 5)", 1}]).Spec
		a3c := newGavelJob("a", "A3C", 0, 645, speeds.byTask[gavelTask{"A3C", 1}]).Spec
		for name, tc := range map[string]struct {
			on          string
			self, other *core.JobSpec
			part        float64
			known       bool
		}{
			"the job":           {"v100", &lm, &a3c, 30 / 64.5, true},
			"its partner":       {"v100", &a3c, &lm, 5. / 8, true},
			"two of a kind":     {"v100", &lm, &lm, 0, false},
			"on another type":   {"k80", &lm, &a3c, 0, false},
			"on a type without": {"t4", &lm, &a3c, 0, false},
		} {
			if part, known := tc.self.Pairs.Part(tc.on, tc.self, tc.other); part != tc.part || known != tc.known {
				t.Errorf("%s, %s: part %v, known %v; want %v, %v", form, name, part, known, tc.part, tc.known)
			}
		}
	}
}

func TestGavelReadersNameEveryProblem(t *testing.T) {
	read := func(format string, perHour float64) func(*input) (*Workload, error) {
		return func(in *input) (*Workload, error) {
			return GavelConfig{Format: format, JobsPerHour: perHour}.read(in, toyGavel(t, toySpeeds))
		}
	}
	speeds := func(in *input) (*Workload, error) {
		_, err := readGavelSpeeds(in)
		return nil, err
	}
	for name, tc := range map[string]struct {
		read    func(*input) (*Workload, error)
		content string
		want    string
	}{
		"stream": {
			read(gavelStream, 1e-6),
			toyStreamHeader + "0,LM (batch size 6),1,1,1,1\n1,LM (batch size 5),3,1,1,1\n2,A3C,2,1,1,1\n3,A3C,1,0,0,-1\n4,A3C,1,1,1,90\n",
			`t.csv:2:3: job_type is "LM (batch size 6)"; expected a type of job that was measured; did you mean "LM (batch size 5)"? valid types: A3C, LM (batch size 5)
t.csv:3:21: scale_factor is "3"; expected a number that LM (batch size 5) was measured with: 1, 2
t.csv:4:7: scale_factor is "2"; expected a number that A3C was measured to run with on some accelerator type
t.csv:5:9: duration_v100_s is "0"; expected a number of seconds above 0, at most 1e11
t.csv:5:11: total_steps is "0"; expected a number of steps above 0, at most 1e15
t.csv:5:13: unit_interarrival_after is "-1"; expected a number of seconds from 0 to 1e11
t.csv:6:13: unit_interarrival_after is "90"; expected submissions before 1e11 s`,
		},
		"trace": {
			read(gavelTrace, 0), "A3C\tx\ty\t-n\t2\t800\t1\t0\t-2\t1\nA3C\tx\n",
			`t.csv:1:12: needs_data_dir is "2"; expected a flag from 0 to 1
t.csv:1:20: priority_weight is "0"; expected a number from 1e-6 to 1000000
t.csv:1:22: slo is "-2"; expected a number from -1 to 1e300
t.csv:2:1: 2 fields; expected 10`,
		},
		"a table of speeds": {
			speeds, "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\nv100,A3C,1,,,1,\nv100,A3C,1,,,-1,\nv100,A3C,1,,,2,\n",
			`t.csv:3:14: tput_self is "-1"; expected a number of steps per second from 0 to 1e9
t.csv:4:6: job_type is "A3C"; expected one row for 1 of it alone on v100`,
		},
		"a document of speeds": {
			speeds, `{"v100": {"A3C": {"null": 1}, "('A3C', 1)": {"('A3C', 1)": [1, 1]}, "('A3C', 0)": {"null": 1}}, "": {}}`,
			`t.csv: "" is no accelerator type of printable characters
t.csv: v100: "('A3C', 0)": expected a job alone, "null", to have from 0 to 1e9 steps per second on 1 to 1048576 devices
t.csv: v100: "('A3C', 1)": expected a job alone, "null", to have from 0 to 1e9 steps per second on 1 to 1048576 devices
t.csv: v100: "A3C" is not a job type and a number, such as ('LM (batch size 5)', 2)`,
		},
		"a table of pairs": {
			speeds, "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\nv100,A3C,1,,,1,\nv100,A3C,1,A3C,2,1,1\nv100,A3C,1,A3C,1,1,x\nv100,A3C,1,A3C,0,1,1\n",
			`t.csv:3:16: partner_scale_factor is "2"; expected 1, as of the job: the two have the same devices
t.csv:4:20: tput_partner is "x"; expected a number of steps per second from 0 to 1e9
t.csv:5:16: partner_scale_factor is "0"; expected a whole number from 1 to 1048576`,
		},
		"pairs of what was not measured alone": {
			speeds, "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\nv100,A3C,1,,,1,\nv100,A3C,1,LM,1,1,1\nk80,A3C,1,A3C,1,1,1\nv100,A3C,1,A3C,1,10,11\n",
			`t.csv:3:1: "LM" on 1 devices of v100 is measured beside another, and not alone
t.csv:4:1: "A3C" on 1 devices of k80 is measured beside another, and not alone
t.csv:4:1: "A3C" on 1 devices of k80 is measured beside another, and not alone
t.csv:5:1: "A3C" on 1 devices of v100 is more than 10 times as fast beside another as alone`,
		},
		"pairs that contradict others": {
			speeds, "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\nv100,A3C,1,,,10,\nv100,LM,1,,,80,\nv100,A3C,1,LM,1,9,52\nv100,LM,1,A3C,1,5,9\nv100,LM,1,A3C,1,52,9\nv100,A3C,1,LM,1,9,51\n",
			`t.csv:5:1: "LM" beside "A3C" on 1 devices of v100 has 5 and 9 steps per second, and 52 and 9 in line 4; a pair may be there in both orders with the same rates
t.csv:7:1: "A3C" beside "LM" on 1 devices of v100 has 9 and 51 steps per second, and 9 and 52 in line 4; a pair may be there in both orders with the same rates`,
		},
		"a document of pairs that contradict others": {
			speeds, `{"v100": {"('A3C', 1)": {"null": 1, "('LM', 1)": [1, 2]}, "('LM', 1)": {"null": 1, "('A3C', 1)": [1, 2]}}}`,
			`t.csv: "LM" beside "A3C" on 1 devices of v100 has 1 and 2 steps per second, and 2 and 1 before; a pair may be there in both orders with the same rates`,
		},
		"a document of pairs": {
			speeds, `{"v100": {"('A3C', 1)": {"null": 1, "('A3C', 1)": [1], "('A3C', 2)": [1, 1], "A3C": [1, 1], "('B', 1)": [1, -1]}}}`,
			`t.csv: v100: "('A3C', 1)" beside "('A3C', 1)": expected two rates from 0 to 1e9 steps per second, of jobs on as many devices
t.csv: v100: "('A3C', 1)" beside "('A3C', 2)": expected two rates from 0 to 1e9 steps per second, of jobs on as many devices
t.csv: v100: "('A3C', 1)" beside "('B', 1)": expected two rates from 0 to 1e9 steps per second, of jobs on as many devices
t.csv: v100: "('A3C', 1)" beside "A3C": expected two rates from 0 to 1e9 steps per second, of jobs on as many devices`,
		},
		"no document":       {speeds, "{", "t.csv: unexpected EOF"},
		"an empty document": {speeds, "{}", "t.csv: holds no throughput of a job alone"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := readString(tc.read, tc.content)
			if err == nil {
				t.Fatal("no problem")
			}
			positioned(t, err)
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

// A pair may be there twice, in either order, as long as the rows agree; on another type, or with other replicas, it is another pair.
func TestGavelPairsInBothOrders(t *testing.T) {
	const head = "worker_type,job_type,scale_factor,partner_job_type,partner_scale_factor,tput_self,tput_partner\n" +
		"v100,A3C,1,,,10,\nv100,LM,1,,,80,\nv100,A3C,2,,,10,\nv100,LM,2,,,80,\nk80,A3C,1,,,10,\nk80,LM,1,,,80,\nv100,A3C,1,LM,1,9,52\n"
	for name, rows := range map[string]string{
		"the other order": "v100,LM,1,A3C,1,52,9\n",
		"the same row":    "v100,A3C,1,LM,1,9,52\n",
		"another type":    "k80,LM,1,A3C,1,5,9\n",
		"more replicas":   "v100,LM,2,A3C,2,5,9\n",
		"two alike":       "v100,LM,1,LM,1,5,5\n",
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := readString(func(in *input) (*Workload, error) {
				_, err := readGavelSpeeds(in)
				return nil, err
			}, head+rows); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestGavelConfigs(t *testing.T) {
	for name, tc := range map[string]struct {
		config interface{ Validate() error }
		want   string
	}{
		"nothing":      {GavelConfig{Format: gavelStream}, "path: is empty\nthroughputs_path: is empty"},
		"a timed rate": {GavelConfig{Path: "a", ThroughputsPath: "b", Format: gavelTrace, JobsPerHour: 4}, "jobs_per_hour: needs format: stream; a trace says when its jobs are submitted"},
		"no speeds":    {GavelGeneratedConfig{}, "throughputs_path: is empty"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := tc.config.Validate(); err == nil || err.Error() != tc.want {
				t.Errorf("problems %v, want %s", err, tc.want)
			}
		})
	}
}

// The first numbers of Python's random.Random.
func TestMersenne(t *testing.T) {
	for seed, want := range map[uint64][3]float64{
		0:       {0.8444218515250481, 0.7579544029403025, 0.420571580830845},
		2:       {0.9560342718892494, 0.9478274870593494, 0.05655136772680869},
		1 << 40: {0.1036394562812375, 0.6705558677439764, 0.4266543913526999},
	} {
		m := newMersenne(seed)
		if got := [3]float64{m.float64(), m.float64(), m.float64()}; got != want {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
	}
	m, drawn := newMersenne(1), []int{}
	for range 8 {
		drawn = append(drawn, m.intN(26))
	}
	if diff := cmp.Diff([]int{4, 18, 25, 24, 2, 8, 3, 15}, drawn); diff != "" {
		t.Errorf("choices (-want +got):\n%s", diff)
	}
}
