package operate_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/quartet-sched/quartet/configs"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/backend"
	"github.com/quartet-sched/quartet/core/control"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/internal/engine"
)

// operated is a backend that takes orders and carries none out.
type operated struct {
	files   []backend.JobFile
	orders  []string
	elapsed float64
}

func (o *operated) Submit(_ context.Context, f backend.JobFile) ([]string, error) {
	o.files = append(o.files, f)
	if strings.Contains(string(f.Text), "bad") {
		return nil, core.Diagnostics{{Position: core.Position{File: f.Name, Line: 3, Column: 6}, Path: "jobs[0].name", Summary: "is bad", Hint: "make it good"}}
	}
	return strings.Fields(string(f.Text)), nil
}

func (o *operated) Cancel(_ context.Context, job string) error {
	o.orders = append(o.orders, "cancel "+job)
	if job == "forth" {
		return fmt.Errorf("no job %q", job)
	}
	return nil
}

func (o *operated) SetHealth(_ context.Context, node string, h core.Health) error {
	o.orders = append(o.orders, h.String()+" "+node)
	return nil
}

func (o *operated) ReadLog(_ context.Context, l backend.Log, to io.Writer) error {
	_, err := fmt.Fprintf(to, "%+v\n", l)
	return err
}

func (*operated) WriteSnapshot(context.Context, io.Writer) error { return nil }

func (o *operated) Present() float64 { return o.elapsed }

func (*operated) Next(context.Context, core.Wake) (core.Observation, error) {
	return core.Observation{}, io.EOF
}

func (*operated) Apply(context.Context, []core.Change) error { return nil }

func (*operated) Capabilities() []core.Capability { return nil }

// scheduler serves a run "local" below a folder that becomes the working one: a job that lost its devices to another, and
// one that never fits.
func scheduler(t *testing.T, o *operated, more ...core.Event) {
	t.Helper()
	dir, err := os.MkdirTemp("", "operate") // the folder of a test may be too long a path for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	t.Chdir(dir)
	if err := os.MkdirAll("runs/local/live", 0o700); err != nil {
		t.Fatal(err)
	}
	config, err := configs.Load(catalog(), configs.Options{Sets: []string{"pipeline.allocation={type: las, config: {quantum_seconds: 0}}", "pipeline.placement={type: first_fit}"}})
	if err != nil {
		t.Fatal(err)
	}
	log := slog.New(slog.DiscardHandler)
	stages, err := engine.BuildStages(config, log)
	if err != nil {
		t.Fatal(err)
	}
	cluster := coretest.MakeCluster().Nodes(2, "t4", 4).Obj()
	board := control.NewBoard(cluster)
	p := core.NewPipeline(cluster, stages, core.PipelineOptions{Rounds: core.RoundOptions{IntervalSeconds: 10}, Observers: []core.Observer{board}})
	submitted := func(id core.JobID, name string, replicas int, at float64) core.Event {
		spec := coretest.MakeJob(name).ID(id).Tenant("vision").Replicas(replicas).Submit(at).Work(1000).Obj().JobSpec
		spec.Command = []string{"python3", "train.py"}
		return core.Event{Kind: core.JobSubmitted, AtSeconds: at, Job: id, Spec: spec, StepsLeft: math.NaN()}
	}
	for _, seen := range []core.Observation{
		{Events: []core.Event{submitted(0, "first", 8, 0), submitted(1, "huge", 9, 0)}},
		{NowSeconds: 10, Events: append([]core.Event{
			submitted(2, "second", 2, 10),
			{Kind: core.JobProgressed, AtSeconds: 10, Progress: 40, Rate: 4, FromSeconds: 10, StepsLeft: math.NaN()},
			{Kind: core.JobMeasured, AtSeconds: 10, Measurement: core.Measurement{Accelerator: "t4", Nodes: 2, Replicas: 8, PerDevice: 32, StepSeconds: 0.25}},
		}, more...)},
	} {
		if err := p.Round(t.Context(), seen, o); err != nil {
			t.Fatal(err)
		}
	}
	o.elapsed = 70
	server := control.NewServer(o, board, log)
	if err := server.ServeSocket(filepath.Join("runs", "local", "live", control.SocketName)); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
}

func TestOperateWords(t *testing.T) {
	o := &operated{}
	scheduler(t, o)
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	cases := map[string]struct {
		args []string
		want string
	}{
		"jobs": {[]string{"jobs"}, `id  job     state    replicas     age     ran  progress  where or why not
 0  first   waiting         8  1m 10s  10.0 s     4.0 %  preempted_by_priority
 2  second  running         2  1m 00s  1m 00s     0.0 %  t4-0:0,1
`},
		"all jobs": {[]string{"jobs", "--all", "-o", "markdown"}, `| id | job    | state    | replicas |    age |    ran | progress | where or why not      |
|---:|:-------|:---------|---------:|-------:|-------:|---------:|:----------------------|
|  0 | first  | waiting  |        8 | 1m 10s | 10.0 s |    4.0 % | preempted_by_priority |
|  1 | huge   | rejected |        9 |    0 s |    0 s |    0.0 % | exceeds_cluster       |
|  2 | second | running  |        2 | 1m 00s | 1m 00s |    0.0 % | t4-0:0,1              |
`},
		"jobs for programs": {[]string{"jobs", "-o", "csv"}, `id,job,tenant,application,state,reason,requested,min_replicas,max_replicas,replicas,seats,submit_s,first_start_s,finish_s,executed_s,gpu_seconds,restarts,preemptions,progress,total_work,failures,message
0,first,vision,,waiting,preempted_by_priority,8,8,8,0,,0,0,,10,80,0,1,40,1000,0,
2,second,vision,,running,,2,2,2,2,"t4-0:0,1",10,10,,60,120,0,0,0,1000,0,
`},
		"nodes": {[]string{"nodes"}, `node  accelerator  rack  devices  used  health
t4-0  t4                       4     2  ready
t4-1  t4                       4     0  ready
`},
		"describe": {[]string{"describe", "first"}, `job           first
id            0
state         waiting: preempted_by_priority
tenant        vision
command       python3 train.py
replicas      8 asked for
submitted     at 0 s, 1m 10s ago
first start   at 0 s, 1m 10s ago
ran           10.0 s, 1m 20s of devices
restarts      0
preemptions   1
progress      4.0 %
measured      250 ms a step on 8 replicas, 2 nodes, batch 32 per device

round      at  what           by                   where or why
    1     0 s  job_submitted
    1     0 s  start          placement/first_fit  t4-0:0,1,2,3 t4-1:0,1,2,3
    2  10.0 s  stop           allocation/las       preempted_by_priority
`},
		"explain": {[]string{"explain", "first"}, `Job first is pending: it was preempted for a job that comes first (round 2, allocation/las) [preempted_by_priority]
Pending for 1m 00s: 1m 00s after preemption.

round      at  what           by                   where or why
    2  10.0 s  stop           allocation/las       preempted_by_priority
    1     0 s  start          placement/first_fit  t4-0:0,1,2,3 t4-1:0,1,2,3
    1     0 s  job_submitted
`},
		"explain a rejected one": {[]string{"explain", "huge", "-o", "markdown"}, `Job huge was rejected: needs 9 GPUs, 8 available (round 1) [exceeds_cluster]

| round |  at | what          | by       | where or why                                   |
|------:|----:|:--------------|:---------|:-----------------------------------------------|
|     1 | 0 s | reject        | pipeline | exceeds_cluster (wants 9 devices, 8 available) |
|     1 | 0 s | job_submitted |          |                                                |
`},
		"explain a running one": {[]string{"explain", "second", "-o", "csv"}, `round,t_s,what,by,reason,message,wanted,available,unit,seats,batch_per_device,accumulation_steps,learning_rate_factor
2,10,start,placement/first_fit,,,,,,"t4-0:0,1",,,
2,10,job_submitted,,,,,,,,,,
`},
		"describe for programs": {[]string{"describe", "huge", "-o", "csv"}, "field,value\nid,1\njob,huge\ntenant,vision\napplication,\nstate,rejected\n" +
			"reason,exceeds_cluster\nrequested,9\nmin_replicas,9\nmax_replicas,9\nreplicas,0\nseats,\nsubmit_s,0\nfirst_start_s,\nfinish_s,0\nexecuted_s,0\n" +
			"gpu_seconds,0\nrestarts,0\npreemptions,0\nprogress,0\ntotal_work,1000\nfailures,0\nmessage,\n"},
		"logs":              {[]string{"logs", "first"}, "{Job:first Rank:0 Stderr:false Follow:false}\n"},
		"logs of a replica": {[]string{"logs", "first", "--rank", "3", "--stderr", "-f"}, "{Job:first Rank:3 Stderr:true Follow:true}\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, tc.args...)
			if code != 0 || stderr != "" {
				t.Errorf("exit code %d: %s", code, stderr)
			}
			if diff := cmp.Diff(tc.want, stdout); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
}

func TestOperateDocuments(t *testing.T) {
	scheduler(t, &operated{})
	code, stdout, stderr := invoke(t, "describe", "first", "-o", "json")
	var described struct {
		ID          int
		Job, State  string
		GPUSeconds  float64  `json:"gpu_seconds"`
		Finish      *float64 `json:"finish_s"`
		Command     []string
		Tuning      any
		Measurement struct {
			Step float64 `json:"step_seconds"`
		}
		Decisions []struct {
			What, Reason string
			Wanted       *float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &described); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, code, stderr)
	}
	if d := described; d.Job != "first" || d.State != "waiting" || d.GPUSeconds != 80 || d.Finish != nil || len(d.Command) != 2 || d.Tuning != nil ||
		d.Measurement.Step != 0.25 || len(d.Decisions) != 3 || d.Decisions[2].Reason != "preempted_by_priority" || d.Decisions[2].Wanted != nil {
		t.Errorf("described as %s", stdout)
	}
	code, stdout, stderr = invoke(t, "explain", "huge", "-o", "json")
	var explained struct {
		Job, State, Reason, Explanation string
		Decisions                       []struct {
			What   string
			Wanted float64
		}
	}
	if err := json.Unmarshal([]byte(stdout), &explained); err != nil || code != 0 {
		t.Fatalf("%v, exit code %d: %s", err, code, stderr)
	}
	if e := explained; e.State != "rejected" || e.Reason != "exceeds_cluster" || !strings.Contains(e.Explanation, "needs 9 GPUs") || e.Decisions[0].Wanted != 9 {
		t.Errorf("explained as %s", stdout)
	}
}

func TestOperateOrders(t *testing.T) {
	o := &operated{}
	scheduler(t, o)
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{"one": "a b", "two": "c", "bad": "bad"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const cancelled = "job \"first\" is cancelled; it was waiting\n"
	const badly = "bad:3:6: jobs[0].name: is bad; make it good\n"
	cases := map[string]struct {
		args           []string
		code           int
		stdout, stderr string
	}{
		"several files":   {[]string{"submit", "one", "two"}, 0, "a\nb\nc\n", ""},
		"for programs":    {[]string{"submit", "one", "-o", "csv"}, 0, "job\na\nb\n", ""},
		"one is bad":      {[]string{"submit", "one", "bad", "two"}, 2, "a\nb\nc\n", badly},
		"one is not":      {[]string{"submit", "nothing", "bad"}, 2, "", "nothing: cannot be read: no such file or directory\n" + badly},
		"nothing given":   {[]string{"submit"}, 2, "", "error: \"quartet submit\" needs FILE...|-: quartet submit FILE...|- [flags]\nsee \"quartet submit --help\"\n"},
		"cancel":          {[]string{"cancel", "first", "second"}, 0, "", cancelled + "job \"second\" is cancelled; it was running\n"},
		"cancel no job":   {[]string{"cancel", "forth", "first"}, 2, "", cancelled + `there is no job "forth"; valid jobs: first, huge, second` + "\n"},
		"drain":           {[]string{"drain", "t4-0", "t4-1"}, 0, "", "node \"t4-0\" is drained: the next round takes 1 job off it: second\nnode \"t4-1\" is drained; no job runs on it\n"},
		"undrain":         {[]string{"undrain", "t4-0"}, 0, "", "node \"t4-0\" is ready already\n"},
		"drain no node":   {[]string{"drain", "t4-7"}, 2, "", `there is no node "t4-7"; did you mean "t4-0"? valid nodes: t4-0, t4-1` + "\n"},
		"describe no job": {[]string{"describe", "fisrt"}, 2, "", `there is no job "fisrt"; did you mean "first"? valid jobs: first, huge, second` + "\n"},
		"explain no job":  {[]string{"explain", "hug"}, 2, "", `there is no job "hug"; did you mean "huge"? valid jobs: first, huge, second` + "\n"},
		"logs have one form": {
			[]string{"logs", "first", "-o", "json"},
			2, "",
			`--output: "json" is no format of "quartet logs"; it writes the output as it is` + "\n",
		},
		"no such run":           {[]string{"jobs", "--run", "other", "--wait", "0s"}, 1, "", `error: no scheduler is running for run "other"; running here: local (use --run local)` + "\n"},
		"a run elsewhere":       {[]string{"cancel", "first", "--out", here + "/runs"}, 0, "", cancelled},
		"a socket":              {[]string{"cancel", "first", "--socket", "runs/local/live/quartet.sock"}, 0, "", cancelled},
		"TCP without files":     {[]string{"jobs", "--server", "localhost:1"}, 2, "", "error: --server needs --tls-cert, --tls-key and --tls-ca too\nsee \"quartet jobs --help\"\n"},
		"a run and a server":    {[]string{"jobs", "--run", "r", "--server", "localhost:1"}, 2, "", "error: --run and --server exclude each other\nsee \"quartet jobs --help\"\n"},
		"files that are absent": {[]string{"jobs", "--server", "localhost:1", "--tls-cert", "c", "--tls-key", "k", "--tls-ca", "a"}, 2, "", "a: read authority: open a: no such file or directory\nc: read certificate with key \"k\": open c: no such file or directory\n"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			code, stdout, stderr := invoke(t, tc.args...)
			if diff := cmp.Diff([]any{tc.code, tc.stdout, tc.stderr}, []any{code, stdout, stderr}); diff != "" {
				t.Errorf("(-want,+got):\n%s", diff)
			}
		})
	}
	for _, f := range o.files {
		if f.Dir != here {
			t.Errorf("%s comes from %q, want %q", f.Name, f.Dir, here)
		}
	}
	for _, want := range []string{"cancel first", "cancel second", "draining t4-0", "draining t4-1", "ready t4-0"} {
		if !slices.Contains(o.orders, want) {
			t.Errorf("no order %q", want)
		}
	}
}

// The decisions of a simulation are explained as those of a scheduler.
func TestExplainARecordedRun(t *testing.T) {
	t.Chdir(t.TempDir())
	if code, _, stderr := invoke(t, "simulate", "--out", "runs", "-q"); code != 0 {
		t.Fatal(stderr)
	}
	code, stdout, stderr := invoke(t, "explain", "job-000007", "--run-dir", "runs/default")
	if code != 0 || !strings.HasPrefix(stdout, "Job job-000007 has completed.\n\nround ") || !strings.Contains(stdout, "start") {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr = invoke(t, "explain", "jbo-000007", "--run-dir", "runs/default")
	if code != 2 || !strings.Contains(stderr, `has no job "jbo-000007"; did you mean "job-000007"?`) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
	lines := `{"round":1,"t_s":0,"job":"a","verdict":"defer","reason":"waiting_for_devices","wanted":2,"available":1,"unit":"devices","by":"placement/first_fit"}
{"round":2,"t_s":10,"job":"a","action":"start","replicas":2,"seats":[["t4-0","0,1"]],"by":"placement/first_fit"}
{"round":2,"t_s":10,"node":"t4-0","event":"node_changed","health":"down"}
{"round":3,"t_s":20,"job":"a","event":"job_interrupted"}
`
	if err := os.WriteFile("decisions.jsonl", []byte(lines), 0o600); err != nil {
		t.Fatal(err)
	}
	want := `Job a is pending: nodes that it needs are down or draining (round 3) [node_unavailable]
Pending for 10.0 s: 10.0 s for GPUs.

round      at  what             by                   where or why
    3  20.0 s  job_interrupted                       node_unavailable
    2  10.0 s  start            placement/first_fit  t4-0:0,1
    1     0 s  defer            placement/first_fit  waiting_for_devices (wants 2 devices, 1 available)
`
	code, stdout, stderr = invoke(t, "explain", "a", "--run-dir", ".")
	if diff := cmp.Diff(want, stdout); diff != "" || code != 0 {
		t.Errorf("exit code %d, %s (-want,+got):\n%s", code, stderr, diff)
	}
	if err := os.WriteFile("decisions.jsonl", []byte(lines+"garbage\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := invoke(t, "explain", "a", "--run-dir", "."); code != 2 || !strings.HasPrefix(stderr, "decisions.jsonl:5: no decision: ") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// A scheduler that listens on TCP answers whoever shows a certificate, here the one of its authority itself.
func TestOperateOverTCP(t *testing.T) {
	dir := t.TempDir()
	files := selfSigned(t, dir)
	if err := os.Mkdir(filepath.Join(dir, "s"), 0o700); err != nil {
		t.Fatal(err)
	}
	bound, err := control.ListenTLS(t.Context(), "127.0.0.1:0", files)
	if err != nil {
		t.Fatal(err)
	}
	address := bound.Addr().String()
	t.Chdir(dir)
	server := control.NewServer(&operated{}, control.NewBoard(coretest.MakeCluster().Nodes(1, "t4", 4).Obj()), slog.New(slog.DiscardHandler))
	if err := server.ServeTLS(bound); err != nil {
		t.Fatal(err)
	}
	flags := []string{"--server", address, "--tls-cert", files.Certificate, "--tls-key", files.Key, "--tls-ca", files.Authority}
	code, stdout, stderr := invoke(t, append([]string{"nodes", "-o", "csv"}, flags...)...)
	if want := "node,accelerator,rack,devices,used,health\nt4-0,t4,,4,0,ready\n"; code != 0 || stdout != want {
		t.Errorf("exit code %d, %s%s", code, stdout, stderr)
	}
	code, _, stderr = invoke(t, append([]string{"run", "--out", dir, "--listen", address}, flags[2:]...)...)
	if code != 2 || !strings.HasPrefix(stderr, "--listen: ") {
		t.Errorf("exit code %d for an address that is taken, %s", code, stderr)
	}
	if err := server.Close(); err != nil {
		t.Error(err)
	}
	code, _, stderr = invoke(t, append([]string{"nodes"}, flags...)...)
	if code != 1 || !strings.Contains(stderr, "does not answer") || !strings.Contains(stderr, "is there one on "+address) {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// selfSigned writes a certificate that is its own authority.
func selfSigned(t *testing.T, dir string) control.TLSFiles {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		NotAfter: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"crt": {Type: "CERTIFICATE", Bytes: certificate}, "key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return control.TLSFiles{Certificate: filepath.Join(dir, "crt"), Key: filepath.Join(dir, "key"), Authority: filepath.Join(dir, "crt")}
}
