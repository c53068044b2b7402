package workload

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const csvHeader = "name,submit_s,duration_s,replicas\n"

// Every problem of a file is told at once, in order, each with its place and what was expected.
func TestProblemsOfATable(t *testing.T) {
	cases := map[string]struct {
		read    func(*input) (*Workload, error)
		content string
		want    []string
	}{
		"empty file":              {readCSV, "", []string{`t.csv: the file is empty; expected the header name,submit_s,duration_s,replicas`}},
		"semicolons":              {readCSV, strings.ReplaceAll(csvHeader+"a,0,1,1\n", ",", ";"), []string{`t.csv:1: columns are divided by ";"; divide them by commas`}},
		"tabs":                    {readCSV, strings.ReplaceAll(csvHeader+"a,0,1,1\n", ",", "\t"), []string{`t.csv:1: columns are divided by "\t"; divide them by commas`}},
		"UTF-16":                  {readCSV, "\xff\xfen\x00a\x00m\x00e\x00\n\x00", []string{`t.csv: is UTF-16 text; save it as UTF-8`}},
		"UTF-16, the other way":   {readCSV, "\xfe\xff\x00n\x00a", []string{`t.csv: is UTF-16 text; save it as UTF-8`}},
		"UTF-16 without a header": {readPhilly, "\xff\xfe1\x00\n\x00", []string{`t.csv: is UTF-16 text; save it as UTF-8`}},
		"no rows":                 {readCSV, csvHeader, []string{`t.csv: no rows; expected at least one`}},
		"blank lines":             {readCSV, csvHeader + "\n\r\n\n", []string{`t.csv: no rows; expected at least one`}},
		"header": {readCSV, "name,submit,duration_s,name,x\na,1,2,3,4\n", []string{
			`t.csv:1: missing column "submit_s"`,
			`t.csv:1: missing column "replicas"`,
			`t.csv:1:6: unknown column "submit"; did you mean "submit_s"? valid columns: name, submit_s, duration_s, replicas, tenant, application, weight, min_replicas, max_replicas, accelerators, cpus, memory_gb, pinned, limit_s, estimate_s, observed_start_s, outcome, deadline_s, best_effort, tier, share_milli, utilisation, device_memory_gb, slowdown_tolerance, mig_profile, load_s, compute_s, sync_s, iteration_s, ideal_cpus, ideal_memory_gb, ideal_speedup, base_cpus, base_memory_gb, experiment`,
			`t.csv:1:24: column "name" appears twice`,
			`t.csv:1:29: unknown column "x"; valid columns: name, submit_s, duration_s, replicas, tenant, application, weight, min_replicas, max_replicas, accelerators, cpus, memory_gb, pinned, limit_s, estimate_s, observed_start_s, outcome, deadline_s, best_effort, tier, share_milli, utilisation, device_memory_gb, slowdown_tolerance, mig_profile, load_s, compute_s, sync_s, iteration_s, ideal_cpus, ideal_memory_gb, ideal_speedup, base_cpus, base_memory_gb, experiment`,
		}},
		"cells": {readCSV, csvHeader + "a,-1,2,3\n,1,0,3\nb,NaN,+Inf,0\nc,1,2,1.5\nd,0x1p3,1e99,-4\n\"e\u0001\",1_0,,x\n", []string{
			`t.csv:2:3: submit_s is "-1"; expected a number of seconds from 0 to 1e11`,
			`t.csv:3:1: name is ""; expected a text of printable characters`,
			`t.csv:3:4: duration_s is "0"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:4:3: submit_s is "NaN"; expected a number of seconds from 0 to 1e11`,
			`t.csv:4:7: duration_s is "+Inf"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:4:12: replicas is "0"; expected a whole number from 1 to 1048576`,
			`t.csv:5:7: replicas is "1.5"; expected a whole number from 1 to 1048576`,
			`t.csv:6:3: submit_s is "0x1p3"; expected a number of seconds from 0 to 1e11`,
			`t.csv:6:9: duration_s is "1e99"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:6:14: replicas is "-4"; expected a whole number from 1 to 1048576`,
			`t.csv:7:1: name is "e\x01"; expected a text of printable characters`,
			`t.csv:7:6: submit_s is "1_0"; expected a number of seconds from 0 to 1e11`,
			`t.csv:7:10: duration_s is ""; expected a number of seconds above 0, at most 1e11`,
			`t.csv:7:11: replicas is "x"; expected a whole number from 1 to 1048576`,
		}},
		"shape of rows": {readCSV, csvHeader + "a,1,2\nb,1,2,3,4\nc,1,\"2\"x,3\nd,1,2,3\n", []string{
			`t.csv:2:1: 3 fields; expected 4`,
			`t.csv:3:1: 5 fields; expected 4`,
			`t.csv:4:7: extraneous or missing " in quoted-field`,
		}},
		"tasks that cannot be": {readOpenBWhole, strings.Join(openbColumns.all(), ",") + "\na,-1,1,1.5,1001,T4|T4,LS,Running,9,8,\nb,1,1,1,1000,T4|,LS,Running,9,10,11\n", []string{
			`t.csv:2:3: cpu_milli is "-1"; expected a number from 0 to 1.048576e9`,
			`t.csv:2:8: num_gpu is "1.5"; expected a number of devices from 0 to 1048576`,
			`t.csv:2:12: gpu_milli is "1001"; expected thousandths of a device from 0 to 1000`,
			`t.csv:2:17: gpu_spec is "T4|T4"; expected different accelerator types with | between them`,
			`t.csv:3:14: gpu_spec is "T4|"; expected different accelerator types with | between them`,
			`t.csv:3:31: deletion_time is "10"; expected a moment not before the task was scheduled`,
		}},
		"only tasks without a device": {readOpenBWhole, strings.Join(openbColumns.all(), ",") + "\na,1,1,0,0,,LS,Running,9,18,\n", []string{
			`t.csv: no task has a device`,
		}},
		"beyond a bound": {readCSV, csvHeader + "a,1e12,1e400,1048577\n", []string{
			`t.csv:2:3: submit_s is "1e12"; expected a number of seconds from 0 to 1e11`,
			`t.csv:2:8: duration_s is "1e400"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:2:14: replicas is "1048577"; expected a whole number from 1 to 1048576`,
		}},
		"name twice, in the second column": {readCSV, "replicas,name,submit_s,duration_s\n16,a,1,2\n8,a,9,9\n", []string{
			`t.csv:3:3: job name "a" appears twice; first on line 2`,
		}},
		"name twice": {readCSV, csvHeader + "a,1,2,3\nb,1,2,3\na,9,9,9\n", []string{
			`t.csv:4:1: job name "a" appears twice; first on line 2`,
		}},
		"optional cells": {readCSV, "name,submit_s,duration_s,replicas,weight,min_replicas,max_replicas,accelerators,cpus,memory_gb,pinned,limit_s,estimate_s\n" +
			"a,1,2,3,0,4,2,v100|v100,-1,lots,yes,0,NaN\nb,1,2,3,,,,,,,,,\n", []string{
			`t.csv:2:9: weight is "0"; expected a number from 1e-6 to 1000000`,
			`t.csv:2:11: min_replicas is "4"; expected at most the 3 of replicas`,
			`t.csv:2:13: max_replicas is "2"; expected at least the 3 of replicas`,
			`t.csv:2:15: accelerators is "v100|v100"; expected different accelerator types with | between them`,
			`t.csv:2:25: cpus is "-1"; expected a number from 0 to 1048576`,
			`t.csv:2:28: memory_gb is "lots"; expected a number from 0 to 1048576`,
			`t.csv:2:33: pinned is "yes"; expected true or false`,
			`t.csv:2:37: limit_s is "0"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:2:39: estimate_s is "NaN"; expected a number of seconds above 0, at most 1e11`,
		}},
		"elastic range": {readCSV, "name,submit_s,duration_s,replicas,min_replicas,max_replicas\na,1,2,3,4,3\nb,1,2,3,3,2\n", []string{
			`t.csv:2:9: min_replicas is "4"; expected at most the 3 of replicas`,
			`t.csv:3:11: max_replicas is "2"; expected at least the 3 of replicas`,
		}},
		"philly": {readPhilly, "timestamp,duration,num_gpus,gpu_time,cluster\n2017-02-29 07:01:55,66.0,1,66.0,a\n2017-10-09 7:01:55,66.0,1,,\n9017-10-09 07:01:55,66.0,1,1,a\n", []string{
			`t.csv:2:1: timestamp is "2017-02-29 07:01:55"; expected a moment such as 2017-10-09 07:01:55, in the years 1970 to 2999`,
			`t.csv:3:1: timestamp is "2017-10-09 7:01:55"; expected a moment such as 2017-10-09 07:01:55, in the years 1970 to 2999`,
			`t.csv:3:27: gpu_time is ""; expected a number of seconds from 0 to 1e300`,
			`t.csv:3:28: cluster is ""; expected a text of printable characters`,
			`t.csv:4:1: timestamp is "9017-10-09 07:01:55"; expected a moment such as 2017-10-09 07:01:55, in the years 1970 to 2999`,
		}},
		"tiresias": {readTiresias, "job_id,num_gpu,submit_time,iterations,model_name,duration,interval\n0,1,0,x,vgg19,164,\n", []string{
			`t.csv:2:7: iterations is "x"; expected a number from 0 to 1e300`,
			`t.csv:2:19: interval is ""; expected a number from 0 to 1e300`,
		}},
		"shockwave": {readShockwave, "LM\tgo\tlm\t-n\t2\t0\t1.5\tfast\t0\t-2\t0\t-1\nLM\tgo\tlm\t-n\t1\t9\t1\tstatic\t1\t-1\t60\n", []string{
			`t.csv:1:13: needs_data_dir is "2"; expected a flag from 0 to 1`,
			`t.csv:1:15: total_steps is "0"; expected a number of steps above 0, at most 1e300`,
			`t.csv:1:17: scale_factor is "1.5"; expected a whole number from 1 to 1048576`,
			`t.csv:1:21: mode is "fast"; expected one of static, accordion, gns`,
			`t.csv:1:26: priority_weight is "0"; expected a number from 1e-6 to 1000000`,
			`t.csv:1:28: slo is "-2"; expected a number from -1 to 1e300`,
			`t.csv:1:31: duration_s is "0"; expected a number of seconds above 0, at most 1e11`,
			`t.csv:1:33: arrival_s is "-1"; expected a number of seconds from 0 to 1e11`,
			`t.csv:2:1: 11 fields; expected 12`,
		}},
		"blox": {readBlox, "job_id,submit_time_s,num_gpus,total_iterations,iteration_time_s\n0,130,1,0,1\n1,130,1,1e9,1e9\n", []string{
			`t.csv:2:9: total_iterations is "0"; expected a number above 0, at most 1e11`,
			`t.csv:3:9: total_iterations is "1e9"; expected total_iterations × iteration_time_s to be above 0 and at most 1e11 seconds`,
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			w, err := readString(tc.read, tc.content)
			if err == nil {
				t.Fatalf("accepted: %+v", w)
			}
			positioned(t, err)
			if diff := cmp.Diff(tc.want, strings.Split(err.Error(), "\n")); diff != "" {
				t.Errorf("problems (-want +got):\n%s", diff)
			}
		})
	}
}

func TestInputs(t *testing.T) {
	const rows = csvHeader + "a,1,2,3\nb,0.5,60,1\n"
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if _, err := z.Write([]byte(rows)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	want, err := readString(readCSV, rows)
	if err != nil {
		t.Fatal(err)
	}
	if want.Jobs[0].Spec.Name != "b" || want.Jobs[1].Spec.ID != 1 {
		t.Errorf("jobs are not in submission order: %+v", want.Jobs)
	}
	cases := map[string]string{
		"plain":                  rows,
		"gzip under any name":    packed.String(),
		"two gzip members":       packed.String() + gzipped(t, "c,1,2,3\n"),
		"byte order mark":        "\ufeff" + rows,
		"windows line ends":      strings.ReplaceAll(rows, "\n", "\r\n"),
		"no newline at the end":  strings.TrimSuffix(rows, "\n"),
		"blank lines":            strings.ReplaceAll(rows, "\n", "\n\n"),
		"columns in other order": "replicas,duration_s,submit_s,name\n1,60,0.5,b\n3,2,1,a\n",
	}
	for name, content := range cases {
		t.Run(name, func(t *testing.T) {
			path := writeFile(t, content, t.TempDir(), "trace")
			got := mustLoad(t, NewCSV(), map[string]any{"path": path})
			jobs := got.Jobs
			if name == "two gzip members" {
				if len(jobs) != 3 {
					t.Fatalf("%d jobs", len(jobs))
				}
				jobs = jobs[:2]
			}
			if diff := diffJobs(want.Jobs, jobs); diff != "" {
				t.Errorf("jobs (-want +got):\n%s", diff)
			}
			sum := sha256.Sum256([]byte(content))
			if diff := cmp.Diff([]Input{{Path: path, SHA256: hex.EncodeToString(sum[:])}}, got.Inputs); diff != "" {
				t.Errorf("inputs (-want +got):\n%s", diff)
			}
		})
	}
}

func gzipped(t *testing.T, content string) string {
	t.Helper()
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	if _, err := z.Write([]byte(content)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestUnreadableInputs(t *testing.T) {
	folder := t.TempDir()
	packed := gzipped(t, csvHeader+"a,1,2,3\n")
	cases := map[string]struct{ path, want string }{
		"missing file": {filepath.Join(folder, "none.csv"), "none.csv: cannot be read: no such file or directory"},
		"folder":       {folder, ": cannot be read: is a directory"},
		"cut gzip":     {writeFile(t, packed[:len(packed)-9], folder, "cut.gz"), "cut.gz: the file is cut short: its gzip data has no end"},
		"cut header":   {writeFile(t, packed[:5], folder, "head.gz"), "head.gz: cannot be read: the file is cut short: "},
		"broken gzip":  {writeFile(t, "\x1f\x8bnothing", folder, "broken.gz"), "broken.gz: cannot be read: "},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := loadFrom(t, NewCSV(), map[string]any{"path": tc.path})
			if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Count(err.Error(), tc.path) != 1 {
				t.Fatalf("error is %v, want …%s", err, tc.want)
			}
			positioned(t, err)
		})
	}
}

func TestLoadStopsWithItsContext(t *testing.T) {
	path := writeFile(t, csvHeader+"a,1,2,3\n", t.TempDir(), "t.csv")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := (traceFile{path: path, read: readCSV}).Load(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("error is %v", err)
	}
}

func readOpenBWhole(in *input) (*Workload, error) { return readOpenB(in, false) }
