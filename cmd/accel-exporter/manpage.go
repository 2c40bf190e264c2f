package main

import (
	"strings"
	"text/template"
	"unicode"
	"unicode/utf8"

	"github.com/alecthomas/kingpin/v2"
)

// manPage is the template of --help-man. kingpin's own has no line that apropos and
// whatis could find, does not escape what roff takes for a command, and lists no other
// page.
const manPage = `{{define "flags"}}{{range .}}{{if not .Hidden -}}
.TP
\fB{{if .Short}}\-{{.Short|Char}}\fR, \fB{{end}}\-\-{{if .IsBoolFlag}}[no\-]{{end}}{{.Name|roff}}\fR{{if not .IsBoolFlag}}=\fI{{.FormatPlaceHolder|roff}}\fR{{end}}
{{.Help|roff}}
{{end}}{{end}}{{end -}}
{{define "args"}}{{range .}}{{if not .Hidden}} {{if not .Required}}[{{end}}\fI{{.Name|roff}}\fR{{if .Value|IsCumulative}}...{{end}}{{if not .Required}}]{{end}}{{end}}{{end}}{{end -}}
.TH "{{.App.Name|page}}" 1 "" "accel\-exporter"
.SH NAME
{{.App.Name|page|roff}} \- {{.App.Help|brief|roff}}
.SH SYNOPSIS
\fB{{.App.Name|roff}}\fR{{if .App.Commands}} \fIcommand\fR{{end}} [\fIflags\fR]{{template "args" .App.Args}}
.SH DESCRIPTION
{{.App.Help|roff}}
{{if .App.Args}}.SH ARGUMENTS
{{range .App.Args}}.TP
\fI{{.Name|roff}}\fR
{{.Help|roff}}
{{end}}{{end -}}
.SH OPTIONS
{{template "flags" .App.Flags -}}
{{if .App.Commands}}.SH COMMANDS
{{range .App.FlattenedCommands}}{{if not .Hidden}}.SS {{.FullCommand|roff}}{{template "args" .Args}}
{{.Help|roff}}
{{template "flags" .Flags}}{{end}}{{end}}{{end -}}
.SH SEE ALSO
{{.App.Name|page|others}}
`

// zshCompletion is kingpin's script, which completes nothing at the first Tab of a
// shell that loads it on demand: that only defines its function.
var zshCompletion = kingpin.ZshCompletionTemplate + `if [[ $funcstack[1] = _{{.App.Name}} ]]; then
    _{{.App.Name}} "$@"
fi
`

func manFuncs() template.FuncMap {
	return template.FuncMap{"page": page, "roff": roff, "brief": brief, "others": others}
}

// others are references to the pages of the other commands.
func others(own string) string {
	var pages []string
	for _, name := range append([]string{""}, commandNames()...) {
		if name = page(strings.TrimSpace("accel-exporter " + name)); name != own {
			pages = append(pages, `\fB`+roff(name)+`\fR(1)`)
		}
	}
	return strings.Join(pages, ", ")
}

// page is the name of the page of a command: man finds "accel-exporter who" by it.
func page(command string) string { return strings.ReplaceAll(command, " ", "-") }

// roff escapes what roff takes for a command or a hyphen.
func roff(text string) string {
	text = strings.NewReplacer(`\`, `\e`, "-", `\-`, "\n\n", "\n.PP\n").Replace(text)
	if strings.HasPrefix(text, ".") || strings.HasPrefix(text, "'") {
		text = `\&` + text
	}
	return text
}

// brief is the first sentence of a help text, as it follows a name.
func brief(help string) string {
	help, _, _ = strings.Cut(help, "\n")
	help, _, _ = strings.Cut(help, ". ")
	first, size := utf8.DecodeRuneInString(help)
	return string(unicode.ToLower(first)) + strings.TrimSuffix(help[size:], ".")
}
