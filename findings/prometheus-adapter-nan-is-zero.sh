#!/usr/bin/env bash
# Finding: prometheus-adapter serves a query's NaN as the custom metric 0, so an autoscaler
# whose query divides 0 by 0, such as busy seconds by requests of a pod without requests,
# sees a pod without load and removes replicas. An absent series has no metric, and the
# autoscaler does not remove replicas for it. +Inf, from a division by 0, is converted to an
# integer without a check: on amd64 the metric is -9223372036854775808m, so a load without
# limit looks like less than none. Neither returns an error.
# Expected: no metric, as for an absent series, or an error.
# Version: sigs.k8s.io/prometheus-adapter v0.12.0. Output seen is below, as the script requires it.
set -euo pipefail
version=v0.12.0
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
cat > main.go <<'G'
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/custom-metrics-apiserver/pkg/provider"
	"sigs.k8s.io/prometheus-adapter/pkg/client"
	"sigs.k8s.io/prometheus-adapter/pkg/config"
	custom "sigs.k8s.io/prometheus-adapter/pkg/custom-provider"
	"sigs.k8s.io/prometheus-adapter/pkg/naming"
)

func main() {
	var value string
	// Prometheus' HTTP API, with one series of one pod.
	prometheus := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/api/v1/series" {
			fmt.Fprint(w, `{"status":"success","data":[{"__name__":"busy","namespace":"n","pod":"p"}]}`)
			return
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{"namespace":"n","pod":"p"},"value":[%d,"%s"]}]}}`, time.Now().Unix(), value)
	}))
	address, err := url.Parse(prometheus.URL)
	if err != nil {
		log.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, meta.RESTScopeNamespace)
	mapper.Add(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}, meta.RESTScopeRoot)
	namers, err := naming.NamersFromConfig([]config.DiscoveryRule{{
		SeriesQuery:  `busy{namespace!="",pod!=""}`,
		Resources:    config.ResourceMapping{Template: "<<.Resource>>"},
		MetricsQuery: "sum by (<<.GroupBy>>) (<<.Series>>{<<.LabelMatchers>>})",
	}}, mapper)
	if err != nil {
		log.Fatal(err)
	}
	metrics, series := custom.NewPrometheusProvider(mapper, nil,
		client.NewClient(http.DefaultClient, address, nil, http.MethodGet), namers, time.Hour, time.Hour)
	series.RunUntil(nil)
	for len(metrics.ListAllMetrics()) == 0 {
		time.Sleep(10 * time.Millisecond)
	}
	busy := provider.CustomMetricInfo{GroupResource: schema.GroupResource{Resource: "pods"}, Namespaced: true, Metric: "busy"}
	for _, value = range os.Args[1:] {
		m, err := metrics.GetMetricByName(context.Background(), types.NamespacedName{Namespace: "n", Name: "p"}, busy, labels.Everything())
		if err != nil {
			fmt.Println(value, err)
			continue
		}
		fmt.Println(value, m.Value.String())
	}
}
G
printf 'module finding\n\ngo 1.25\n\nrequire sigs.k8s.io/prometheus-adapter %s\n' "$version" > go.mod
export GOFLAGS=-mod=mod
go build -o adapter .
seen=$(./adapter 0.9 NaN)
[ "$seen" = $'0.9 900m\nNaN 0' ] || { echo "changed: $seen"; exit 1; }
if [ "$(go env GOARCH)" = amd64 ]; then
  seen=$(./adapter +Inf)
  [ "$seen" = "+Inf -9223372036854775808m" ] || { echo "changed: $seen"; exit 1; }
fi
echo "as found: NaN is served as 0, +Inf as the smallest number (amd64), without an error"
