// Package status serves the status page: what the latest Snapshot has about the
// sources, devices, alerts, events and allocations of the node, for a person with a
// browser.
//
// The page is rendered on the server and complete without its script. The script
// requests it again every two seconds, by its ETag, and replaces what has changed. A
// page is rendered once for all viewers of a Snapshot, and nothing is rendered while
// no browser requests it. A browser that does not read its answer costs a connection
// until the write deadline.
//
// The page loads nothing from elsewhere. Its Content-Security-Policy permits its own
// script and style sheet only, and html/template escapes every text.
package status
