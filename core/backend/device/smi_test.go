package device

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		answer  string
		want    []Device
		wantErr string
	}{
		"two devices": {
			answer: "0, " + firstID + ", Tesla V100-SXM2-16GB, 16384, [N/A]\n1, " + secondID + ", Tesla V100-SXM2-16GB, 16384, [N/A]\n",
			want: []Device{
				{Index: 0, UUID: firstID, Model: "Tesla V100-SXM2-16GB", MemoryMiB: 16384},
				{Index: 1, UUID: secondID, Model: "Tesla V100-SXM2-16GB", MemoryMiB: 16384},
			},
		},
		"MIG": {
			answer: "0, " + firstID + ", NVIDIA H100 80GB HBM3, 81559, Disabled\n1, " + secondID + ", NVIDIA H100 80GB HBM3, 81559, Enabled\n",
			want: []Device{
				{Index: 0, UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559},
				{Index: 1, UUID: secondID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, MIG: true},
			},
		},
		"memory shared with the processor": {
			answer: "0, " + firstID + ", NVIDIA GB10, [N/A], [Not Supported]\n",
			want:   []Device{{UUID: firstID, Model: "NVIDIA GB10"}},
		},
		"quoted, other line ends, no last one": {
			answer: "0,\"" + firstID + "\", \"NVIDIA, of sorts\", 5,N/A\r\n1," + secondID + ",T4,6,Disabled",
			want: []Device{
				{UUID: firstID, Model: "NVIDIA, of sorts", MemoryMiB: 5}, {Index: 1, UUID: secondID, Model: "T4", MemoryMiB: 6},
			},
		},
		"no devices":     {answer: "No devices were found\n"},
		"empty":          {answer: "", wantErr: "the answer is empty"},
		"blank":          {answer: " \n\n", wantErr: "instead of 5"},
		"unit":           {answer: "0, " + firstID + ", Tesla T4, 15360 MiB, [N/A]\n", wantErr: `memory "15360 MiB"`},
		"header":         {answer: "index, uuid, name, memory.total [MiB], mig.mode.current\n", wantErr: `index "index"`},
		"too few values": {answer: "0, " + firstID + ", Tesla T4, 15360\n", wantErr: "4 values instead of 5"},
		"more values":    {answer: "0, " + firstID + ", Tesla T4, 15360, [N/A], 0\n", wantErr: "6 values instead of 5"},
		"open quote":     {answer: "0, \"" + firstID, wantErr: "parse error"},
		"unknown memory": {answer: "0, " + firstID + ", Tesla T4, [Unknown Error], [N/A]\n", wantErr: `memory "[Unknown Error]"`},
		"unknown MIG":    {answer: "0, " + firstID + ", Tesla T4, 15360, [Unknown Error]\n", wantErr: `MIG mode "[Unknown Error]"`},
		"a device that does not answer": {
			answer:  "0, " + firstID + ", Tesla T4, 15360, [N/A]\nUnable to determine the device handle for GPU0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n",
			wantErr: "GPU is lost",
		},
		"another list": {answer: "GPU 0: NVIDIA H100 80GB HBM3 (UUID: " + firstID + ")\n  MIG 1g.10gb Device 0: (UUID: MIG-1)\n", wantErr: "1 values instead of 5"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			got, err := parse([]byte(tc.answer))
			compare(t, got, err, tc.want, tc.wantErr)
		})
	}
}

// What is parsed and found sound means the same when it is written down again.
func FuzzParse(f *testing.F) {
	f.Add([]byte("0, " + firstID + ", Tesla V100-SXM2-16GB, 16384, [N/A]\n1, " + secondID + ", NVIDIA H100, 81559, Enabled\n"))
	f.Add([]byte("No devices were found\n"))
	f.Add([]byte("0,\"" + firstID + "\",\"a, b\",[N/A],Disabled"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		devices, err := parse(answer)
		if err != nil || check(devices) != nil {
			return
		}
		if len(devices) == 0 {
			if firstLine(answer) != noDevices {
				t.Fatalf("no devices in %q", answer)
			}
			return
		}
		var again strings.Builder
		for _, d := range devices {
			if strings.TrimSpace(TypeOf(d.Model)) == "" {
				t.Errorf("model %q has no type", d.Model)
			}
			mode := "Disabled"
			if d.MIG {
				mode = "Enabled"
			}
			fmt.Fprintf(&again, "%d, %s, \"%s\", %d, %s\n", d.Index, d.UUID, strings.ReplaceAll(d.Model, `"`, `""`), d.MemoryMiB, mode)
		}
		got, err := parse([]byte(again.String()))
		if err != nil {
			t.Fatalf("%q: %v", again.String(), err)
		}
		if diff := cmp.Diff(devices, got); diff != "" {
			t.Errorf("-first +again\n%s", diff)
		}
	})
}

// fakeProgram puts a shell script into PATH, alone but for what the script itself needs.
func fakeProgram(t *testing.T, script string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("there is no shell (/bin/sh); install one")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte("#!/bin/sh\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
}

// dividedScript answers the query with one device that is divided by MIG; what follows it answers -L.
const dividedScript = `if [ "$*" != "-L" ]; then echo "0, ` + firstID + `, NVIDIA H100 80GB HBM3, 81559, Enabled"; exit; fi
`

func TestProgram(t *testing.T) {
	cases := map[string]struct {
		script  string
		want    []Device
		wantErr string
	}{
		"answers": {
			script: `[ "$*" = "--query-gpu=index,uuid,name,memory.total,mig.mode.current --format=csv,noheader,nounits" ] || exit 2
echo "0, ` + firstID + `, Tesla T4, 15360, [N/A]"`,
			want: []Device{{UUID: firstID, Model: "Tesla T4", MemoryMiB: 15360}},
		},
		"no devices, in its way to exit": {script: "echo No devices were found; exit 6"},
		"no devices, exit 0":             {script: "echo No devices were found"},
		"no kernel module": {
			script:  `echo "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver."; echo; exit 9`,
			wantErr: "communicate with the NVIDIA driver",
		},
		"versions differ": {script: `echo "Failed to initialize NVML: Driver/library version mismatch" >&2; exit 18`, wantErr: "version mismatch"},
		"an old driver":   {script: `echo 'Field "mig.mode.current" is not a valid field to query.'; exit 2`, wantErr: "not a valid field"},
		"silent failure":  {script: "exit 255", wantErr: "exit status 255"},
		"rows and failure": {
			script: `echo "0, ` + firstID + `, Tesla T4, 15360, [N/A]"; exit 15`, wantErr: "exit status 15",
		},
		"silent": {script: "exit 0", wantErr: "the answer is empty"},
		"divided by MIG": {
			script: dividedScript + `echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: ` + firstID + `)
  MIG 3g.40gb     Device  0: (UUID: ` + partID + `)
  MIG 1g.10gb     Device  1: (UUID: ` + otherPartID + `)"`,
			want: []Device{
				{UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, MIG: true},
				part(0, 0, "3g.40gb", partID), part(0, 1, "1g.10gb", otherPartID),
			},
		},
		"divided, and without instances": {
			script: dividedScript + `echo "GPU 0: NVIDIA H100 80GB HBM3 (UUID: ` + firstID + `)"`,
			want:   []Device{{UUID: firstID, Model: "NVIDIA H100 80GB HBM3", MemoryMiB: 81559, MIG: true}},
		},
		"the list fails":             {script: dividedScript + "echo Insufficient Permissions; exit 4", wantErr: `list instances of MIG: exit status 4: it said "Insufficient Permissions"`},
		"the list is something else": {script: dividedScript + "echo Hello", wantErr: `list instances of MIG: line "Hello" is of no device`},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			fakeProgram(t, tc.script)
			got, err := program("nvidia-smi").list(context.Background())
			compare(t, got, err, tc.want, tc.wantErr)
		})
	}
}

func TestProgramThatHangsIsEnded(t *testing.T) {
	if _, err := os.Stat("/bin/sleep"); err != nil {
		t.Skip("there is no /bin/sleep; install coreutils")
	}
	fakeProgram(t, "exec /bin/sleep 600")
	ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
	defer cancel()
	if _, err := program("nvidia-smi").list(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want that it gave no answer", err)
	}
}

// Without the library nvidia-smi is asked, and without both there are no devices.
func TestDiscoverWithoutLibrary(t *testing.T) {
	missing := library(filepath.Join(t.TempDir(), "libnvidia-ml.so.1"))
	fakeProgram(t, `echo "0, `+firstID+`, Tesla T4, 15360, [N/A]"`)
	found, err := discover(context.Background(), environment(), missing, program("nvidia-smi"))
	compare(t, found, err, Found{Source: "nvidia-smi", Devices: []Device{{UUID: firstID, Model: "Tesla T4", MemoryMiB: 15360}}}, "")

	t.Setenv("PATH", t.TempDir())
	found, err = discover(context.Background(), environment(), missing, program("nvidia-smi"))
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Devices) > 0 || !strings.HasSuffix(found.Reason, ", nvidia-smi is not in PATH") {
		t.Errorf("found %v", found)
	}
}
