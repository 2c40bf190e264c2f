package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

// variable is a choice at the head of a dashboard. Its query is one of
// Grafana's functions label_values and query_result.
type variable struct {
	name, label, about string
	query, regex       string
	all                string // value that stands for all; needs several
	several, hidden    bool
}

var source = common.DataSourceRef{Type: cog.ToPtr("prometheus"), Uid: cog.ToPtr("${datasource}")}

var datasource = variable{
	name: "datasource", label: "Data source", about: "The Prometheus that scrapes the exporters and evaluates their rules.",
}

// anything also fits series that lack the label.
const anything = ".*"

var (
	cluster = variable{
		name: "cluster", label: "Cluster", about: "Empty where the scrape sets no label cluster.",
		query: "label_values(accel_source_up, cluster)", all: anything, several: true,
	}
	pool = variable{
		name: "pool", label: "Pool", about: "Empty where the scrape sets no label pool; then all nodes are one pool.",
		query: `label_values(accel_source_up{cluster=~"$cluster"}, pool)`, all: anything, several: true,
	}
	// oneCluster is for what is in one cluster: nodes of two clusters may have one name.
	// It is empty where no series has the label.
	oneCluster = variable{
		name: "cluster", label: "Cluster", about: "Empty where the scrape sets no label cluster.",
		query: "label_values(accel_source_up, cluster)",
	}
	// jobs are the scrape jobs with an exporter in the time range: the series up of an
	// exporter that is down has no other label to find it by.
	jobs = variable{
		name: "job", label: "Job", about: "Scrape jobs of exporters during the time range.", hidden: true, several: true,
		query: `label_values(accel_source_up{cluster=~"$cluster"}, job)`,
	}
	// scrape is the least step of every chart. Without it a rate is empty where the
	// scrape interval is longer than that of the data source.
	scrape = variable{
		name: "scrape", label: "Scrape interval", about: "The least step of the charts. Found from the number of samples within ten minutes; choose or type another if it is wrong.",
		query: `query_result(label_replace(count_values("interval", max(clamp(15 * ceil(40 / max by (job) (count_over_time(accel_source_up{cluster=~"$cluster"}[10m])) - 0.2), 15, 120)) or vector(15)), "interval", "${1}s", "interval", "(.+)"))`,
		regex: `/interval="([^"]+)"/`,
	}
	namespace = variable{
		name: "namespace", label: "Namespace", about: "Namespaces with pods that have a device.",
		query: `label_values(accel_allocation_info{cluster=~"$cluster"}, namespace)`, all: anything, several: true,
	}
	// oneNode is a node by name, else by what was scraped; instances are the targets
	// under which the chosen nodes were scraped in the time range, which change where
	// an exporter's pod is replaced.
	oneNode = variable{
		name: "node", label: "Node", about: "By the label node, or by instance where the scrape sets no node.",
		query: "query_result(group by (host) (" + host(`accel_source_up{cluster=~"$cluster"}`) + "))",
		regex: `/host="([^"]+)"/`,
	}
	instances = variable{
		name: "instance", about: "Scrape targets of the nodes during the time range.", hidden: true, several: true,
		query: `query_result(group by (instance) (present_over_time(accel_source_up{cluster=~"$cluster",node=~"$node"}[$__range]) or present_over_time(accel_source_up{cluster=~"$cluster",instance=~"$node"}[$__range])))`,
		regex: `/instance="([^"]+)"/`,
	}
	devices = variable{
		name: "device", label: "Device", about: "One device or MIG instance, or all of the node.",
		query: "query_result(max by (device, name) (" + names(inNode) + "))",
		regex: `/device="(?<value>[^"]+)".*name="(?<text>[^"]+)"/`, all: anything, several: true,
	}
	// boards are the GPUs that the chosen MIG instances are part of, or the devices.
	boardsOf = variable{
		name: "board", about: "The devices that the partitions are part of, or the devices themselves.", hidden: true, several: true,
		query: `query_result(group by (board) (label_replace(label_replace(accel_device_info{` + inBox + `}, "board", "$1", "device", "(.+)"), "board", "$1", "parent", "(.+)")))`,
		regex: `/board="([^"]+)"/`,
	}
	pods = variable{
		name: "pod", label: "Pod", about: "Pods with a device.",
		query: `label_values(accel_allocation_info{cluster=~"$cluster",namespace=~"$namespace"}, pod)`, all: anything, several: true,
	}
	// cardNodes and cards narrow a dashboard to FPGAs and AMD GPUs.
	cardNodes = variable{
		name: "node", label: "Node", about: "Nodes with FPGAs or AMD GPUs, by the label node, or by instance where the scrape sets no node.",
		query: "query_result(group by (host) (" + host(`accel_device_info{class="fpga",`+inPool+`} or accel_device_info{vendor="amd",`+inPool+`}`) + "))",
		regex: `/host="([^"]+)"/`, all: anything, several: true,
	}
	cards = variable{
		name: "device", label: "Device", about: "FPGAs and AMD GPUs.",
		query: `query_result(group by (device) (accel_device_info{class="fpga",` + inPool + `,instance=~"$instance"} or accel_device_info{vendor="amd",` + inPool + `,instance=~"$instance"}))`,
		regex: `/device="([^"]+)"/`, all: anything, several: true,
	}
)

func (v variable) model() dashboard.VariableModel {
	m := dashboard.VariableModel{
		Name: v.name, Label: cog.ToPtr(v.label), Description: cog.ToPtr(v.about),
		Hide: cog.ToPtr(dashboard.VariableHideDontHide), SkipUrlSync: cog.ToPtr(v.hidden),
	}
	if v.hidden {
		m.Hide = cog.ToPtr(dashboard.VariableHideHideVariable)
	}
	if v.name == datasource.name {
		m.Type = dashboard.VariableTypeDatasource
		m.Query = &dashboard.StringOrMap{String: cog.ToPtr("prometheus")}
		// Grafana's own name of the default; without it the first query has no source.
		first := dashboard.StringOrArrayOfString{String: cog.ToPtr("default")}
		m.Current = &dashboard.VariableOption{Selected: cog.ToPtr(true), Text: first, Value: first}
		return m
	}
	m.Type = dashboard.VariableTypeQuery
	m.Datasource = &source
	m.Query = &dashboard.StringOrMap{Map: map[string]any{"query": v.query, "refId": v.name}}
	m.Regex = cog.ToPtr(v.regex)
	m.Refresh = cog.ToPtr(dashboard.VariableRefreshOnTimeRangeChanged)
	m.Sort = cog.ToPtr(dashboard.VariableSortNaturalAsc)
	m.Multi, m.IncludeAll = cog.ToPtr(v.several), cog.ToPtr(v.several)
	if v.several {
		all := []string{"$__all"}
		m.Current = &dashboard.VariableOption{
			Selected: cog.ToPtr(true),
			Text:     dashboard.StringOrArrayOfString{ArrayOfString: []string{"All"}},
			Value:    dashboard.StringOrArrayOfString{ArrayOfString: all},
		}
	}
	if v.all != "" {
		m.AllValue = cog.ToPtr(v.all)
	}
	return m
}
