// CHROMIUM=/usr/bin/chromium node --test
//
// What was seen in Grafana 12 of testdata/before.json, panels of *Node* as they once
// were, is drawn here too, and not of the panels of today.
import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { after, before, test } from 'node:test';
import { open } from './browser.mjs';

const read = (name) => JSON.parse(readFileSync(new URL(name, import.meta.url)));
const then = read('testdata/before.json');
const whole = read('../../dashboards/accel-node.json');
const titles = then.panels.map((p) => p.title);
const now = { ...whole, panels: whole.panels.filter((p) => titles.includes(p.title)) };
const devices = { ...whole, panels: whole.panels.filter((p) => p.title === 'Devices') };

// answer is that of a Prometheus without rules of capacity: GPU 1 is failed, a pod has
// GPU 0, and three alerts fire all the time.
function answer(path, ask) {
  const query = ask.get('query') ?? '';
  const [start, end, step] = ['start', 'end', 'step'].map((k) => Number(ask.get(k)));
  const times = [];
  for (let t = start; step && t <= end; t += step) {
    times.push(t);
  }
  const series = (metric, value, at = times) => ({ metric, values: at.map((t) => [t, String(value)]) });
  if (path.includes('/label/')) {
    return path.includes('/cluster/') ? ['b'] : [];
  }
  const one = { scope: 'b', cluster: 'b', host: 'n1', name: 'GPU 0', device: 'G', model: 'H100' };
  if (query.includes('NaN') && path.endsWith('query')) {
    return { result: [{ metric: one, value: [Number(ask.get('time')), query.includes('accel_memory') ? 'NaN' : '1'] }] };
  }
  if (query.includes('NaN')) {
    return { result: [series({ scope: 'b', host: 'n1', device: 'G' }, query.includes('accel_power') ? 300 : 'NaN')] };
  }
  if (path.endsWith('query')) {
    const metric = { scope: 'b', cluster: 'b', host: 'n1', name: 'GPU 0', device: 'G', namespace: 'ml', pod: 'llm-0', resource: 'nvidia.com/gpu' };
    return { result: query.includes('accel_allocation_info') ? [{ metric, value: [Number(ask.get('time')), '1'] }] : [] };
  }
  if (query.startsWith('ALERTS')) {
    const starts = query.includes('unless');
    return { result: ['a', 'b', 'c'].map((alertname, i) => series({ alertname }, 1, starts ? [times[i + 2]] : times)) };
  }
  if (query.includes('accel_device_health')) {
    return { result: [series({ name: 'GPU 0' }, 0), series({ name: 'GPU 1' }, 3)] };
  }
  return { result: query.includes('accel_power_watts') ? [series({ name: 'GPU 0' }, 300)] : [] };
}

let browser, server, drawn;

before(async () => {
  server = createServer((req, res) => {
    const url = new URL(req.url, 'http://x');
    res.setHeader('access-control-allow-origin', '*');
    res.end(JSON.stringify({ status: 'success', data: answer(url.pathname, url.searchParams) }));
  });
  await new Promise((ready) => server.listen(0, '127.0.0.1', ready));
  browser = await open();
  const at = `http://127.0.0.1:${server.address().port}`;
  const out = process.env.OUT;
  drawn = {
    then: await browser.draw(at, then, { minutes: 60, png: out && `${out}/then.png` }),
    now: await browser.draw(at, now, { minutes: 60, png: out && `${out}/now.png` }),
    devices: await browser.draw(at, devices, { minutes: 60, png: out && `${out}/devices.png` }),
    light: await browser.draw(at, now, { minutes: 60, mode: 'light', png: out && `${out}/light.png` }),
  };
});

after(async () => {
  await browser?.close();
  server?.close();
});

const rows = (board) => board.report.Health.states.map((s) => [s.name, s.parts[0].text, s.parts[0].colour]);

test('a timeline has the words and colours of its states', () => {
  const old = rows(drawn.then);
  assert.deepEqual(old.map((r) => r[1]), ['-∞+', '-∞+']);
  assert.equal(old[0][2], old[1][2]);
  const fresh = rows(drawn.now);
  assert.deepEqual(fresh.map((r) => r.slice(0, 2)), [['GPU 0', 'healthy'], ['GPU 1', 'failed']]);
  assert.notEqual(fresh[0][2], fresh[1][2]);
});

test('an alert marks its start and does not cover the charts', () => {
  const covered = (board) => board.marks.map((m) => (m.to - m.from) / 3600);
  assert.ok(covered(drawn.then).every((share) => share > 0.9));
  assert.deepEqual(covered(drawn.now), [0, 0, 0]);
});

test('no data has no colour of a state, and its text', () => {
  const tile = (board) => board.report['Failed devices'].values[0];
  const green = rows(drawn.now)[0][2];
  assert.equal(tile(drawn.then).colour, green);
  assert.equal(tile(drawn.now).text, 'The state of the devices is unknown');
  assert.equal(tile(drawn.now).colour, 'rgba(0,0,0,0)');
  const timeline = (board) => board.report['PCIe links with fewer lanes'].text;
  assert.equal(timeline(drawn.then), 'Data does not have a time field');
  assert.equal(timeline(drawn.now), 'No device of this node measures it');
});

test('the links of a row keep its cluster', () => {
  const links = (board) => board.report.Holders.fields.flatMap((f) => f.links ?? []);
  assert.ok(links(drawn.then).every((l) => !l.includes('cluster')));
  const device = links(drawn.now).find((l) => l.startsWith('/d/accel-device'));
  assert.match(device, /&var-cluster=b&var-node=n1&var-device=G$/);
  assert.ok(links(drawn.now).some((l) => l.endsWith('&var-cluster=b&var-namespace=ml&var-pod=llm-0')));
});

test('a series has no colour of a state, in light and dark', () => {
  const power = (board) => board.report.Power.fields.at(-1);
  assert.equal(power(drawn.then).colour, rows(drawn.now)[0][2]);
  for (const board of [drawn.now, drawn.light]) {
    assert.equal(power(board).last, '300 W');
    assert.ok(rows(board).every((row) => row[2] !== power(board).colour));
  }
});

test('a table of one device has one row, with lines and without what is not measured', () => {
  const fields = drawn.devices.report.Devices.fields;
  const last = (name) => fields.find((f) => f.name === name)?.last;
  assert.ok(fields.every((f) => f.rows === 1));
  assert.equal(last('Device'), 'GPU 0');
  assert.equal(last('Power'), '1 W');
  assert.equal(last('Memory'), '–');
  assert.equal(last('Power trend'), '300 W');
});
