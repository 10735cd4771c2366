// Package main is the control plane of Kubernetes for the tests of the chart: etcd, kube-apiserver and
// kube-controller-manager in one program. The name under which it is started selects the component, and so does its first
// argument otherwise. All other arguments are those of the component.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllers "k8s.io/kubernetes/cmd/kube-controller-manager/app"
)

var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllers.NewControllerManagerCommand,
}

func main() {
	name := filepath.Base(os.Args[0])
	if _, known := components[name]; !known && name != "etcd" {
		if len(os.Args) < 2 {
			fmt.Fprintln(os.Stderr, "usage: control-plane etcd|kube-apiserver|kube-controller-manager [options]")
			os.Exit(2)
		}
		name = os.Args[1]
		os.Args = os.Args[1:]
	}
	if name == "etcd" {
		etcdmain.Main(os.Args)
		return
	}
	component, known := components[name]
	if !known {
		fmt.Fprintf(os.Stderr, "control-plane: %q is no component\n", name)
		os.Exit(2)
	}
	os.Exit(cli.Run(component()))
}
