//go:build linux

package kubecluster

import (
	"bytes"
	"context"
	"crypto/rand"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"
)

//go:embed stages.yaml
var ownStages string

// Options say what to start.
type Options struct {
	Bin       string // folder of the programs
	Dir       string // folder of the cluster; it must not exist, or be empty
	Scheduler bool   // start kube-scheduler too
	// Tied ends the programs with the process that started them, as tests want it. Otherwise they go on.
	Tied bool
	// APIServer and ControllerManager are further flags.
	APIServer, ControllerManager []string
}

// Cluster is a control plane that runs. It is kept in the file cluster.json of its folder.
type Cluster struct {
	Dir        string // of its files
	Kubeconfig string // path of the kubeconfig file
	Server     string // URL of the API server
	Token      string // of an administrator

	Options   Options             // that it was started with
	EtcdPort  int                 // of this machine, at which etcd listens
	Processes map[string]*Process // its programs by name
}

const (
	clusterFile = "cluster.json"
	startLimit  = 2 * time.Minute
	loopback    = "127.0.0.1"
)

// Start starts a control plane and returns once it answers. When it cannot, nothing is left running.
func Start(ctx context.Context, o Options) (_ *Cluster, err error) {
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, err
	}
	if entries, err := os.ReadDir(dir); err == nil && len(entries) > 0 {
		return nil, fmt.Errorf("%s is not empty", dir)
	}
	if o.Bin, err = filepath.Abs(o.Bin); err != nil {
		return nil, err
	}
	for _, sub := range [...]string{"etcd", "certs", "log"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return nil, err
		}
	}
	ports, err := freePorts(5)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		Dir: dir, Options: o, EtcdPort: ports[0], Kubeconfig: filepath.Join(dir, "kubeconfig"), Processes: map[string]*Process{},
		Server: "https://" + net.JoinHostPort(loopback, strconv.Itoa(ports[2])),
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Stop())
		}
	}()
	if err := c.writeSecrets(); err != nil {
		return nil, err
	}
	for name, args := range c.commandLines(ports) {
		c.Processes[name] = &Process{Path: filepath.Join(o.Bin, name), Args: args, Log: filepath.Join(dir, "log", name+".log")}
	}
	// A node without heartbeats is believed lost after 40 s: all have to be there before the controller manager looks.
	for _, name := range c.order() {
		if err := c.Processes[name].start(dir, o.Tied); err != nil {
			return nil, err
		}
		if name == apiServer {
			if err := c.WaitReady(ctx); err != nil {
				return nil, err
			}
		}
	}
	return c, c.save()
}

// order is that in which the programs start. Those that were added come last.
func (c *Cluster) order() []string {
	order := []string{etcd, apiServer, controllerManager, nodes}
	if c.Options.Scheduler {
		order = append(order, scheduler)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Processes)) {
		if !slices.Contains(order, name) {
			order = append(order, name)
		}
	}
	return order
}

// Add starts another program, which ends with the cluster.
func (c *Cluster) Add(name, path string, args ...string) error {
	if c.Processes[name] != nil {
		return fmt.Errorf("there is a program %q already", name)
	}
	p := &Process{Path: path, Args: args, Log: filepath.Join(c.Dir, "log", name+".log")}
	if err := p.start(c.Dir, c.Options.Tied); err != nil {
		return err
	}
	c.Processes[name] = p
	return c.save()
}

func (c *Cluster) commandLines(ports []int) map[string][]string {
	etcdURL := "http://" + net.JoinHostPort(loopback, strconv.Itoa(ports[0]))
	peers := "http://" + net.JoinHostPort(loopback, strconv.Itoa(ports[1]))
	certs := func(name string) string { return filepath.Join(c.Dir, "certs", name) }
	lines := map[string][]string{
		etcd: {
			"--data-dir=" + filepath.Join(c.Dir, "etcd"), "--listen-client-urls=" + etcdURL, "--advertise-client-urls=" + etcdURL,
			"--listen-peer-urls=" + peers, "--initial-advertise-peer-urls=" + peers, "--initial-cluster=default=" + peers,
			"--unsafe-no-fsync", "--auto-compaction-mode=periodic", "--auto-compaction-retention=5m", "--log-level=warn",
		},
		apiServer: append([]string{
			"--etcd-servers=" + etcdURL, "--bind-address=" + loopback, "--advertise-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[2]), "--cert-dir=" + filepath.Join(c.Dir, "certs"),
			"--service-account-key-file=" + certs(publicKey), "--service-account-signing-key-file=" + certs(privateKey),
			"--service-account-issuer=https://kubernetes.default.svc", "--service-cluster-ip-range=10.0.0.0/24",
			"--token-auth-file=" + certs(tokens), "--authorization-mode=RBAC", "--allow-privileged=true",
		}, c.Options.APIServer...),
		controllerManager: append([]string{
			"--kubeconfig=" + c.Kubeconfig, "--service-account-private-key-file=" + certs(privateKey),
			"--root-ca-file=" + certs(serverCertificate), "--use-service-account-credentials=false", "--leader-elect=false",
			"--bind-address=" + loopback, "--secure-port=" + strconv.Itoa(ports[3]), "--cert-dir=" + filepath.Join(c.Dir, "certs"),
			"--kube-api-qps=2000", "--kube-api-burst=4000",
		}, c.Options.ControllerManager...),
		nodes: {
			"-v=ERROR", "--kubeconfig=" + c.Kubeconfig, "--config=" + filepath.Join(c.Options.Bin, stagesFile), "--manage-all-nodes=true",
			"--node-ip=" + loopback, "--node-lease-duration-seconds=40",
		},
	}
	if c.Options.Scheduler {
		lines[scheduler] = []string{
			"--config=" + filepath.Join(c.Dir, schedulerConfig), "--bind-address=" + loopback,
			"--secure-port=" + strconv.Itoa(ports[4]), "--cert-dir=" + filepath.Join(c.Dir, "certs"),
		}
	}
	return lines
}

// Open finds the control plane of a folder.
func Open(dir string) (*Cluster, error) {
	content, err := os.ReadFile(filepath.Join(dir, clusterFile))
	if err != nil {
		return nil, err
	}
	c := new(Cluster)
	if err := json.Unmarshal(content, c); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, clusterFile), err)
	}
	return c, nil
}

func (c *Cluster) save() error {
	content, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.Dir, clusterFile), append(content, '\n'), 0o600)
}

// WaitReady waits until the API server says that it is ready.
func (c *Cluster) WaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startLimit)
	defer cancel()
	for {
		answer, err := c.Do(ctx, "GET", "/readyz", nil)
		if err == nil && bytes.Equal(answer, []byte("ok")) {
			return nil
		}
		if p := c.Processes[apiServer]; !p.alive() {
			return fmt.Errorf("the API server ended: %s", p.lastWords())
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return fmt.Errorf("the API server is not ready: %w", errors.Join(ctx.Err(), err))
		}
	}
}

// Kill ends a program by SIGKILL. The program gets no warning, and is gone afterwards.
func (c *Cluster) Kill(name string) error { return c.Processes[name].kill() }

// Restart starts a program that was killed.
func (c *Cluster) Restart(name string) error {
	if err := c.Processes[name].start(c.Dir, c.Options.Tied); err != nil {
		return err
	}
	return c.save()
}

// Pause stops a program in its tracks, and Resume lets it go on.
func (c *Cluster) Pause(name string) error { return c.Processes[name].pause() }

// Resume lets a program go on that was paused.
func (c *Cluster) Resume(name string) error { return c.Processes[name].resume() }

// Stop ends every program, those first that would complain of others. The folder stays.
func (c *Cluster) Stop() error {
	var problems []error
	order := c.order()
	slices.Reverse(order)
	for _, name := range order {
		if p := c.Processes[name]; p != nil {
			problems = append(problems, p.kill())
		}
	}
	return errors.Join(problems...)
}

// freePorts are ports of the loopback that nobody listens at.
func freePorts(count int) ([]int, error) {
	ports := make([]int, count)
	for i := range ports {
		l, err := net.Listen("tcp", net.JoinHostPort(loopback, "0"))
		if err != nil {
			return nil, err
		}
		defer l.Close() // all at once, so that none is given twice
		ports[i] = l.Addr().(*net.TCPAddr).Port
	}
	return ports, nil
}

func newToken() string {
	var token [16]byte
	_, _ = rand.Read(token[:]) // it never fails
	return hex.EncodeToString(token[:])
}
