package kubelet_test

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"iter"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cluster is a control plane: etcd, and a kube-apiserver that asks RBAC and
// the node authorizer. Nothing schedules or controls.
type cluster struct {
	t         *testing.T
	net       *network
	dir       string
	admin     *http.Client
	etcd, api *process // nil while they are down

	etcdBinary, apiBinary string
}

const (
	apiAddress  = "https://127.0.0.1:6443"
	etcdAddress = "http://127.0.0.1:2379"
	adminToken  = "admin-token"
	nodeToken   = "node-token"
)

// object is one of the API, as JSON has it.
type object = map[string]any

// newCluster returns a control plane that is up.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	needs(t)
	c := &cluster{
		t: t, dir: t.TempDir(),
		etcdBinary: program(t, *etcdBinary, "etcd/usr/bin/etcd"), apiBinary: program(t, *apiserverBinary, "kube-apiserver-v*"),
	}
	net, err := newNetwork()
	must(t, err)
	t.Cleanup(func() { net.Close() })
	c.net = net
	cert, key := certificate(t)
	for name, content := range map[string]string{
		"cert": cert, "key": key,
		"tokens": adminToken + `,admin,admin,"system:masters"` + "\n" + nodeToken + ",system:node:" + nodeName + `,node,"system:nodes"` + "\n",
		"audit-policy": `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": ["RequestReceived"],
			"rules": [{"level": "Metadata", "users": ["` + exporterUser + `", "` + chartUser(lookingRelease) + `", "` + chartUser(actingRelease) + `"]},
				{"level": "None"}]}`,
	} {
		must(t, os.WriteFile(c.path(name), []byte(content), 0o600))
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(cert))
	transport := &http.Transport{DialContext: net.dial, TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}
	c.admin = &http.Client{Transport: transport, Timeout: guard}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		logs, _ := filepath.Glob(c.path("*.log"))
		for _, log := range logs {
			if t.Failed() {
				t.Logf("the last words in %s:\n%s", filepath.Base(log), tail(log))
			}
		}
	})
	c.up()
	return c
}

func (c *cluster) path(name string) string { return filepath.Join(c.dir, name) }

// run starts a program with a log. It is killed when the test ends.
func (c *cluster) run(log, binary string, args ...string) *process {
	c.t.Helper()
	out, err := os.OpenFile(c.path(log), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	must(c.t, err)
	defer out.Close()
	cmd := exec.Command(binary, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = c.dir, out, out
	p, err := c.net.start(cmd)
	must(c.t, err)
	c.t.Cleanup(p.kill)
	return p
}

// up starts what is down, and waits until the API server is ready.
func (c *cluster) up() {
	c.t.Helper()
	if c.etcd == nil {
		c.etcd = c.run("etcd.log", c.etcdBinary, "--data-dir="+c.path("etcd"), "--listen-client-urls="+etcdAddress, "--advertise-client-urls="+etcdAddress,
			"--listen-peer-urls=http://127.0.0.1:2380", "--initial-advertise-peer-urls=http://127.0.0.1:2380", "--initial-cluster=default=http://127.0.0.1:2380")
	}
	c.api = c.run("apiserver.log", c.apiBinary, "--etcd-servers="+etcdAddress, "--bind-address=127.0.0.1", "--advertise-address="+nodeIP,
		"--endpoint-reconciler-type=none", "--service-cluster-ip-range=10.96.0.0/24",
		"--tls-cert-file="+c.path("cert"), "--tls-private-key-file="+c.path("key"),
		"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--allow-privileged", "--token-auth-file="+c.path("tokens"),
		"--client-ca-file="+c.path("cert"), "--requestheader-allowed-names=kube-apiserver", "--enable-aggregator-routing", "--proxy-client-cert-file="+c.path("cert"), "--proxy-client-key-file="+c.path("key"),
		"--requestheader-client-ca-file="+c.path("cert"), "--requestheader-username-headers=X-Remote-User",
		"--requestheader-group-headers=X-Remote-Group", "--requestheader-extra-headers-prefix=X-Remote-Extra-",
		"--service-account-issuer="+issuer, "--service-account-signing-key-file="+c.path("key"), "--service-account-key-file="+c.path("key"),
		"--audit-policy-file="+c.path("audit-policy"), "--audit-log-path="+c.path("audit"))
	await(c.t, "the API server is ready", c.api, func() bool {
		code, _, err := c.ask(http.MethodGet, "/readyz", adminToken, nil)
		return err == nil && code == http.StatusOK
	})
}

// userConfig writes a kubeconfig with a user's token.
func (c *cluster) userConfig(name, token string) { c.userConfigAt(apiAddress, name, token) }

// userConfigAt writes one for an API server that answers at another address.
func (c *cluster) userConfigAt(address, name, token string) {
	c.t.Helper()
	data, err := json.Marshal(kubeconfig(object{"server": address, "certificate-authority": c.path("cert")}, object{"token": token}))
	must(c.t, err)
	must(c.t, os.WriteFile(c.path(name), data, 0o600))
}

// issuer is of the tokens of service accounts.
const issuer = "https://kubernetes.default.svc"

// down ends the API server as a crash would.
func (c *cluster) down() { c.end(&c.api) }

func (c *cluster) end(p **process) {
	if *p != nil {
		(*p).kill()
		*p = nil
	}
}

// ask sends a request with a token and returns the answer's status and, where
// it is one, object. A body that is text is YAML.
func (c *cluster) ask(method, path, token string, body any) (int, object, error) {
	kind := "application/json"
	if method == http.MethodPatch {
		kind = "application/merge-patch+json"
	}
	data, isText := body.(string)
	if isText {
		kind = "application/yaml"
	} else {
		encoded, err := json.Marshal(body)
		if err != nil {
			return 0, nil, err
		}
		data = string(encoded)
	}
	req, err := http.NewRequestWithContext(c.t.Context(), method, apiAddress+path, bytes.NewBufferString(data))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Content-Type", kind)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := c.admin.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	var o object
	if err == nil && resp.Header.Get("Content-Type") == "application/json" {
		err = json.Unmarshal(answer, &o)
	}
	return resp.StatusCode, o, err
}

// do is a request of the administrator's, who is refused nothing.
func (c *cluster) do(method, path string, body any) object {
	c.t.Helper()
	code, answer, err := c.ask(method, path, adminToken, body)
	if err != nil || code >= 300 {
		c.t.Fatalf("%s %s: %d, %v, %v", method, path, code, answer, err)
	}
	return answer
}

// list returns the objects of a collection.
func (c *cluster) list(path string) []any {
	c.t.Helper()
	items, _ := c.do(http.MethodGet, path, nil)["items"].([]any)
	return items
}

// serviceToken returns a token of a service account, bound to an object or to none.
func (c *cluster) serviceToken(namespace, name string, bound object) string {
	c.t.Helper()
	spec := object{"expirationSeconds": 3600}
	if bound != nil {
		spec["boundObjectRef"] = bound
	}
	return text(c.do(http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+name+"/token", object{"spec": spec}), "status", "token")
}

// audit is a line of the API server's record of who did what.
type audit struct {
	Verb, RequestURI string
	User             struct{ Username string }
	ObjectRef        struct{ Resource, Subresource, APIGroup, Namespace, Name string }
	Annotations      map[string]string
}

// audits returns the record.
func (c *cluster) audits() iter.Seq[audit] {
	return func(yield func(audit) bool) {
		for line := range strings.Lines(c.read("audit")) {
			var a audit
			if json.Unmarshal([]byte(line), &a) == nil && !yield(a) { // the last line may be half written
				return
			}
		}
	}
}

// kubeconfig returns one with one server and one user.
func kubeconfig(server, user object) object {
	return object{
		"apiVersion": "v1", "kind": "Config", "current-context": "c",
		"clusters": []any{object{"name": "c", "cluster": server}},
		"users":    []any{object{"name": "c", "user": user}},
		"contexts": []any{object{"name": "c", "context": object{"cluster": "c", "user": "c"}}},
	}
}

// text returns a field of an object.
func text(o object, path ...string) string {
	for _, key := range path[:len(path)-1] {
		o, _ = o[key].(object)
	}
	s, _ := o[path[len(path)-1]].(string)
	return s
}

// certificate returns a certificate for 127.0.0.1 that vouches for itself, and
// its key, which signs tokens too.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kube-apiserver"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	must(t, err)
	encoded, err := x509.MarshalECPrivateKey(private)
	must(t, err)
	block := func(kind string, data []byte) string {
		return string(pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}))
	}
	return block("CERTIFICATE", signed), block("EC PRIVATE KEY", encoded)
}

// compact makes etcd forget every state before the latest.
func (c *cluster) compact() {
	c.t.Helper()
	var latest struct {
		Header struct{ Revision string }
	}
	post := func(path, body string) {
		resp, err := c.admin.Post(etcdAddress+path, "application/json", bytes.NewBufferString(body))
		must(c.t, err)
		defer resp.Body.Close()
		data, err := io.ReadAll(resp.Body)
		must(c.t, err)
		if resp.StatusCode != http.StatusOK {
			c.t.Fatalf("etcd %s: %s", path, data)
		}
		must(c.t, json.Unmarshal(data, &latest))
	}
	post("/v3/kv/range", `{"key": "AA==", "limit": "1"}`)
	post("/v3/kv/compaction", fmt.Sprintf(`{"revision": %q, "physical": true}`, latest.Header.Revision))
}
