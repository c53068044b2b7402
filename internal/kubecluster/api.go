//go:build linux

package kubecluster

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
)

// StatusError is an answer of the API server that is a refusal.
type StatusError struct {
	Method, Path string // of the request
	Code         int    // status code of HTTP
	Status, Body string // the code in words, and what the API server says about it
}

// Error words the request and what the API server answered.
func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %s: %s", e.Method, e.Path, e.Status, e.Body)
}

// Do asks the API server as its administrator and returns the body of the answer. A patch is one of merging: RFC 7386.
func (c *Cluster) Do(ctx context.Context, method, path string, body any) ([]byte, error) {
	answer, err := c.open(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer answer.Close()
	return io.ReadAll(answer)
}

// Stream is the answer to a GET that goes on, as that of a watch does.
func (c *Cluster) Stream(ctx context.Context, path string) (io.ReadCloser, error) {
	return c.open(ctx, http.MethodGet, path, nil)
}

func (c *Cluster) open(ctx context.Context, method, path string, body any) (io.ReadCloser, error) {
	var content io.Reader
	if body != nil {
		encoded, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		content = bytes.NewReader(encoded)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.Server+path, content)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+c.Token)
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/merge-patch+json")
	}
	client, err := c.client()
	if err != nil {
		return nil, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response.Body, nil
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	return nil, errors.Join(err, &StatusError{method, path, response.StatusCode, response.Status, string(bytes.TrimSpace(answer))})
}

// clients are by the certificate that they trust: connections are kept.
var clients sync.Map

func (c *Cluster) client() (*http.Client, error) {
	certificate, err := os.ReadFile(filepath.Join(c.Dir, "certs", serverCertificate))
	if err != nil {
		return nil, err // the API server has yet to write it
	}
	if known, ok := clients.Load(string(certificate)); ok {
		return known.(*http.Client), nil
	}
	trusted := x509.NewCertPool()
	if !trusted.AppendCertsFromPEM(certificate) {
		return nil, fmt.Errorf("%s holds no certificate", serverCertificate)
	}
	client := &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: trusted}, MaxIdleConnsPerHost: nodeWorkers, ForceAttemptHTTP2: true,
	}}
	known, _ := clients.LoadOrStore(string(certificate), client)
	return known.(*http.Client), nil
}

// Pool is nodes that are alike.
type Pool struct {
	Name        string            // nodes are NAME-0, NAME-1, …
	Count       int               // number of nodes
	Devices     int               // number of devices of each node
	Accelerator string            // type; empty for none
	Labels      map[string]string // beside those of the type and the host
}

// The resource and the label by which nodes of NVIDIA devices are known.
const (
	DeviceResource   = "nvidia.com/gpu"
	AcceleratorLabel = "nvidia.com/gpu.product"
)

const nodeWorkers = 16

// AddNodes creates the nodes of pools. KWOK makes them ready a moment later.
func (c *Cluster) AddNodes(ctx context.Context, pools ...Pool) error {
	var bodies []map[string]any
	for _, p := range pools {
		for i := range p.Count {
			bodies = append(bodies, p.node(i))
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	next := make(chan map[string]any)
	var workers sync.WaitGroup
	for range nodeWorkers {
		workers.Go(func() {
			for body := range next {
				if _, err := c.Do(ctx, http.MethodPost, "/api/v1/nodes", body); err != nil {
					cancel(err)
				}
			}
		})
	}
	for _, body := range bodies {
		next <- body
	}
	close(next)
	workers.Wait()
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

func (p *Pool) node(i int) map[string]any {
	name := p.Name + "-" + strconv.Itoa(i)
	labels := map[string]string{"kubernetes.io/hostname": name, "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	if p.Accelerator != "" {
		labels[AcceleratorLabel] = p.Accelerator
	}
	maps.Copy(labels, p.Labels)
	has := map[string]string{"cpu": "96", "memory": "768Gi", "pods": "110"}
	if p.Devices > 0 {
		has[DeviceResource] = strconv.Itoa(p.Devices)
	}
	return map[string]any{
		"apiVersion": "v1", "kind": "Node",
		"metadata": map[string]any{"name": name, "labels": labels, "annotations": map[string]string{"kwok.x-k8s.io/node": "fake"}},
		"status":   map[string]any{"capacity": has, "allocatable": has},
	}
}
