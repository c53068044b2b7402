//go:build linux

package main

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	driver      = "gpu.example.com"
	deviceClass = "gpu"
	request     = "devices"
)

// class is the DeviceClass by which devices are given; empty for none.
func (s *settings) class() string {
	if s.claims {
		return deviceClass
	}
	return ""
}

// publish has a driver tell which devices each node has.
func (r *rig) publish(ctx context.Context) error {
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: deviceClass}}
	class.Spec.Selectors = []resourcev1.DeviceSelector{{CEL: &resourcev1.CELDeviceSelector{Expression: fmt.Sprintf("device.driver == %q", driver)}}}
	if _, err := r.client.DeviceClasses().Create(ctx, class, metav1.CreateOptions{}); err != nil {
		return err
	}
	nodes, err := r.client.Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	return r.each(ctx, len(nodes.Items), func(i int) error {
		name := nodes.Items[i].Name
		slice := &resourcev1.ResourceSlice{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: resourcev1.ResourceSliceSpec{
				Driver: driver, NodeName: &name, Pool: resourcev1.ResourcePool{Name: name, Generation: 1, ResourceSliceCount: 1},
			},
		}
		for d := range r.devices {
			slice.Spec.Devices = append(slice.Spec.Devices, resourcev1.Device{Name: fmt.Sprint("gpu-", d)})
		}
		_, err := r.client.ResourceSlices().Create(ctx, slice, metav1.CreateOptions{})
		return err
	})
}

// create creates a pod for kube-scheduler, and the claim of its device before it.
func (r *rig) create(ctx context.Context, pod *corev1.Pod) error {
	if r.claims {
		claim := &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Name: pod.Name, Namespace: namespace}}
		claim.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
			Name: request, Exactly: &resourcev1.ExactDeviceRequest{
				DeviceClassName: deviceClass, AllocationMode: resourcev1.DeviceAllocationModeExactCount, Count: 1,
			},
		}}
		if _, err := r.client.ResourceClaims(namespace).Create(ctx, claim, metav1.CreateOptions{}); err != nil {
			return err
		}
		pod.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: request, ResourceClaimName: &pod.Name}}
	}
	_, err := r.client.Pods(namespace).Create(ctx, pod, metav1.CreateOptions{})
	return err
}
