'use strict';
// Requests the page again every two seconds and replaces what has changed, so that
// focus, selection, scrolling and open parts stay. Nothing is requested while the
// page is hidden or paused.
(() => {
  const every = 2000, patience = 10000;
  const live = document.getElementById('live'), button = document.getElementById('pause');
  let timer, paused = false, running = false, tag = '', failures = 0;

  // say changes the text for screen readers only when the state changes.
  const say = (text) => { if (live.textContent !== text) live.textContent = text; };

  // own are the parts that this script writes, which the server's page must not replace.
  const own = (node) => node === live || node === button;

  const fit = (old, next) => {
    for (const { name } of [...old.attributes]) {
      if (!next.hasAttribute(name) && !(old.nodeName === 'DETAILS' && name === 'open')) old.removeAttribute(name);
    }
    for (const { name, value } of next.attributes) {
      if (old.getAttribute(name) !== value) old.setAttribute(name, value);
    }
    children(old, next);
  };

  const same = (a, b) => a.nodeName === b.nodeName && (a.id || '') === (b.id || '');

  const children = (old, next) => {
    const wanted = new Set([...next.children].map((c) => c.id).filter(Boolean));
    let at = old.firstChild;
    for (const n of [...next.childNodes]) {
      let found = at;
      while (found && !same(found, n)) found = found.nextSibling;
      if (!found) {
        old.insertBefore(document.importNode(n, true), at);
        continue;
      }
      // What stands before it is gone, unless it comes later: only then does the found
      // node move, because a node that moves loses its focus.
      const before = [];
      for (let b = at; b !== found; b = b.nextSibling) before.push(b);
      if (before.some((b) => wanted.has(b.id))) {
        old.insertBefore(found, at);
      } else {
        before.forEach((b) => b.remove());
        at = found.nextSibling;
      }
      if (own(found)) continue;
      if (found.nodeType === Node.ELEMENT_NODE) fit(found, n);
      else if (found.data !== n.data) found.data = n.data;
    }
    while (at) { const gone = at; at = at.nextSibling; gone.remove(); }
  };

  const poll = async () => {
    clearTimeout(timer);
    if (running || paused || document.hidden) return;
    running = true;
    try {
      const answer = await fetch(location.pathname + location.search, {
        cache: 'no-store', headers: tag ? { 'If-None-Match': tag } : {}, signal: AbortSignal.timeout(patience),
      });
      if (answer.status === 200) {
        const next = new DOMParser().parseFromString(await answer.text(), 'text/html');
        tag = answer.headers.get('ETag') || '';
        document.title = next.title;
        children(document.body, next.body);
      } else if (answer.status !== 304) {
        throw new Error(answer.status === 404 ? 'this device is gone' : 'status ' + answer.status);
      }
      failures = 0;
      document.body.classList.remove('old');
      say('Live');
    } catch (err) {
      // Two in a row: a single one is a restart or a lost packet.
      if (++failures > 1) {
        document.body.classList.add('old');
        say('Not current: ' + (err.name === 'TypeError' ? 'the exporter does not answer' : err.message));
      }
    }
    running = false;
    timer = setTimeout(poll, every * Math.min(failures + 1, 5));
  };

  button.hidden = false;
  button.addEventListener('click', () => {
    paused = !paused;
    button.textContent = paused ? 'Resume' : 'Pause';
    if (paused) say('Paused');
    poll();
  });
  document.addEventListener('visibilitychange', poll);
  say('Live');
  timer = setTimeout(poll, every);
})();
