//go:build linux

package kube

import (
	"bufio"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/quartet-sched/quartet/admission"
	"github.com/quartet-sched/quartet/allocation"
	"github.com/quartet-sched/quartet/core"
	"github.com/quartet-sched/quartet/core/coretest"
	"github.com/quartet-sched/quartet/core/workload"
	"github.com/quartet-sched/quartet/elasticity"
	"github.com/quartet-sched/quartet/placement"
)

// childArgument as the first argument makes the test program a scheduler, which can be killed.
const childArgument = "schedule"

// scheduleIfAsked is what a scheduler of its own process does: schedule KUBECONFIG NAMESPACE NODES POLICY CLASS. It says on stderr when
// it leads, as the program does.
func scheduleIfAsked() {
	if len(os.Args) != 7 || os.Args[1] != childArgument {
		return
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	err := func() error {
		ctx := context.Background()
		opener := coretest.Component(New(realClock{}), map[string]any{
			"kubeconfig": os.Args[2], "namespace": os.Args[3], "watch": os.Args[3], "nodes": os.Args[4], "device_class": os.Args[6],
		}, log)
		b, err := opener.Open(ctx, &core.Cluster{MayGrow: true}, &workload.Workload{Open: true})
		if err != nil {
			return err
		}
		p := core.NewPipeline(&core.Cluster{MayGrow: true}, composed(os.Args[5], log), core.PipelineOptions{
			Rounds:    core.RoundOptions{OnEvents: true},
			Observers: []core.Observer{b.(*Backend)},
			RetryBackend: func(context.Context, int, error) error {
				time.Sleep(look)
				return nil
			},
		})
		return p.Run(ctx, b)
	}()
	log.Error("ended", "error", err)
	os.Exit(1)
}

// composed are stages by the name of their policy: fifo, which takes no devices away, or las, which does.
func composed(policy string, log *slog.Logger) core.Stages {
	queue := coretest.Component(allocation.NewFIFO(), nil, log)
	if policy == "las" {
		queue = coretest.Component(allocation.NewLAS(), map[string]any{"quantum_seconds": longQuantum}, log)
	}
	return core.Stages{
		Admission:  []core.Component[core.Admitter]{{ID: "admission/all", Policy: coretest.Component(admission.NewAcceptAll(), nil, log)}},
		Allocation: core.Component[core.Allocator]{ID: "allocation/" + policy, Policy: queue},
		Placement:  core.Component[core.Placer]{ID: "placement/first_fit", Policy: coretest.Component(placement.NewFirstFit(), nil, log)},
		Elasticity: core.Component[core.Elasticity]{ID: "elasticity/fixed", Policy: coretest.Component(elasticity.NewFixed(), nil, log)},
	}
}

// longQuantum is longer than jobs of tests: none of them is stopped in the second in which its pods succeed.
const longQuantum = 3600.0

// process is a scheduler that can be killed.
type process struct {
	*exec.Cmd
	dir   string
	leads chan struct{} // closed once it does
	ended chan error

	mutex sync.Mutex
	said  []string // the last of it
}

// The lines of a scheduler that begins to lead, in each format of the log.
var leading = regexp.MustCompile(`\bleading\b.*\bepoch\b`)

// spawned counts schedulers, so that versions of the program take turns.
var spawned atomic.Int64

// spawn starts a scheduler: the test program, or the real one if the flag names it.
func (r *rig) spawn(policy string) *process {
	r.Helper()
	p := &process{dir: r.TempDir(), leads: make(chan struct{}), ended: make(chan error, 1)}
	if *program == "" {
		p.Cmd = exec.Command(os.Args[0], childArgument, r.cluster.Kubeconfig, r.namespace, "rig="+r.namespace, policy, r.settings.DeviceClass)
	} else {
		allocation := "{type: " + policy + "}"
		if policy == "las" {
			allocation = fmt.Sprintf("{type: las, config: {quantum_seconds: %v}}", longQuantum)
		}
		config := fmt.Sprintf(`version: 1
name: siege
cluster: {nodes: [{name: unused, accelerator: gpu, devices: 1}]}
workload: {type: submitted}
round: {interval: 5s, on_events: true}
pipeline: {allocation: %s}
backend: {type: kubernetes, config: {kubeconfig: %q, namespace: %s, watch: %[3]s, nodes: rig=%[3]s}}
`, allocation, r.cluster.Kubeconfig, r.namespace)
		var claims []string
		if class := r.settings.DeviceClass; class != "" { // earlier versions know none
			claims = []string{"--set", "backend.config.device_class=" + class}
		}
		path := filepath.Join(p.dir, "config.yaml")
		if err := os.WriteFile(path, []byte(config), 0o600); err != nil {
			r.Fatal(err)
		}
		versions := strings.Split(*program, ",")
		p.Cmd = exec.Command(versions[int(spawned.Add(1))%len(versions)], "run", "-f", path, "--out", p.dir, "--log-level", "info", "--metrics", "off")
		p.Args = append(p.Args, claims...)
		p.Env = append(os.Environ(), "HOME="+p.dir, "XDG_RUNTIME_DIR="+p.dir, "XDG_STATE_HOME="+p.dir, "XDG_CACHE_HOME="+p.dir)
	}
	p.Dir = p.dir
	p.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := p.StderrPipe()
	if err != nil {
		r.Fatal(err)
	}
	if err := p.Start(); err != nil {
		r.Fatal(err)
	}
	go func() {
		p.read(bufio.NewScanner(out))
		p.ended <- p.Wait()
	}()
	r.Cleanup(p.kill)
	return p
}

func (p *process) read(lines *bufio.Scanner) {
	const most = 50
	led := false
	for lines.Scan() {
		if line := lines.Text(); leading.MatchString(line) && !led {
			led = true
			close(p.leads)
		}
		p.mutex.Lock()
		if p.said = append(p.said, lines.Text()); len(p.said) > most {
			p.said = p.said[1:]
		}
		p.mutex.Unlock()
	}
}

// kill kills it, if it is alive, and waits until it is gone.
func (p *process) kill() {
	_ = p.Process.Kill() // it may have ended
	err := <-p.ended
	p.ended <- err
}

func (p *process) words() string {
	p.mutex.Lock()
	defer p.mutex.Unlock()
	return strings.Join(p.said, "\n")
}

// awaitLead waits until a scheduler leads.
func (r *rig) awaitLead(p *process) {
	r.Helper()
	select {
	case <-p.leads:
	case err := <-p.ended:
		p.ended <- err
		r.Fatalf("the scheduler ended: %v\n%s", err, p.words())
	case <-time.After(time.Minute):
		r.Fatalf("the scheduler does not lead\n%s", p.words())
	}
}

// alive complains when a scheduler ended that nobody killed.
func (r *rig) alive(p *process) {
	r.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		r.Fatalf("the scheduler ended: %v\n%s", err, p.words())
	default:
	}
}
