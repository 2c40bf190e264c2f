// Command mimir checks rule files as mimirtool does before it loads them, and
// against the default limits of Mimir's ruler.
package main

import (
	"fmt"
	"os"

	"github.com/go-kit/log"
	"github.com/grafana/mimir/pkg/mimirtool/rules"
	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/promql/parser"
)

// Defaults of -ruler.max-rules-per-rule-group and -ruler.max-rule-groups-per-tenant.
const maxRules, maxGroups = 20, 70

func main() {
	namespaces, err := rules.ParseFiles(rules.MimirBackend, os.Args[1:], model.LegacyValidation, parser.NewParser(parser.Options{}), log.NewLogfmtLogger(os.Stderr))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	groups, count := 0, 0
	for _, n := range namespaces {
		for _, g := range n.Groups {
			groups, count = groups+1, count+len(g.Rules)
			if len(g.Rules) > maxRules {
				fmt.Fprintf(os.Stderr, "%s: %d rules, at most %d\n", g.Name, len(g.Rules), maxRules)
				os.Exit(1)
			}
		}
	}
	if groups > maxGroups {
		fmt.Fprintf(os.Stderr, "%d groups, at most %d\n", groups, maxGroups)
		os.Exit(1)
	}
	fmt.Printf("Mimir: %d namespaces, %d groups, %d rules\n", len(namespaces), groups, count)
}
