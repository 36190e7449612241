'use strict';
// Draws what /api/v1 tells, once a second while the page is visible. Names, reasons and paths come from
// files and from clients: they enter the page as text only, never as markup.

const PERIOD_MS = 1000;
const HISTORY = 120;
const EVENTS_MAX = 200;
const SLOW_MS = 1000;

const $ = id => document.getElementById(id);

/** An element; `children` are elements or texts. */
function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  const { data, ...others } = properties;
  Object.assign(element, others);
  Object.assign(element.dataset, data);
  element.append(...children.filter(child => child != null));
  return element;
}

function drawing(tag, attributes, ...children) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// What did not change is not touched: a reader, a selection and a focus stay where they are.
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}
function setClass(element, name) {
  if (element.className !== name) element.className = name;
}

// ---- Asking ----

class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || `the front answered ${status}`);
    this.status = status;
    this.token = problem.token || '';
  }
}

let token = sessionStorage.getItem('token') || '';

async function ask(method, path, body, version) {
  const headers = {};
  if (token) headers.Authorization = `Bearer ${token}`;
  if (method !== 'GET') headers['Content-Type'] = 'application/json';
  if (version) headers['If-Match'] = `"${version}"`;
  const answer = await fetch(`/api/v1/${path}`, {
    method, headers, body: body && JSON.stringify(body), cache: 'no-store', credentials: 'omit',
    signal: AbortSignal.timeout(15000),
  });
  let value = {};
  try { value = await answer.json(); } catch { /* Not JSON: the status says enough. */ }
  if (!answer.ok) throw new Refused(answer.status, value);
  return value;
}

const pathOf = backend =>
  `upstreams/${encodeURIComponent(backend.upstream)}/backends/${encodeURIComponent(backend.name)}`;

// ---- Numbers and words ----

const count = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });
const many = (number, one, more = `${one}s`) => `${count.format(number)} ${number === 1 ? one : more}`;
const rate = number => number >= 1000 ? short.format(number) : number >= 10 || number === 0 ? number.toFixed(0) : number.toFixed(1);

function bytes(number) {
  for (const unit of ['B', 'kB', 'MB', 'GB']) {
    if (number < 1000 || unit === 'GB') return `${number < 10 && unit !== 'B' ? number.toFixed(1) : number.toFixed(0)} ${unit}`;
    number /= 1000;
  }
}
function millis(value) {
  if (value >= 10000) return `${(value / 1000).toFixed(0)} s`;
  if (value >= 1000) return `${(value / 1000).toFixed(1)} s`;
  return `${value >= 10 ? value.toFixed(0) : value.toFixed(value >= 1 ? 1 : 2)} ms`;
}
function span(seconds) {
  if (seconds < 120) return `${Math.max(0, Math.round(seconds))} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} d`;
}
let serverNow = Date.now();
const ago = moment => `${span((serverNow - Date.parse(moment)) / 1000)} ago`;
const clock = moment => new Date(moment).toLocaleTimeString([], { hour12: false });
const day = moment => new Date(moment).toLocaleString([], { hour12: false });

const MARKS = { up: 'good', ramping: 'warn', verifying: 'warn', suspect: 'warn', out: 'bad' };
const ACTIVATIONS = { active: 'good', drain: 'drain', stopped: 'off' };
function markOf(backend) {
  const activation = backend.settings.activation;
  if (activation !== 'active') return ACTIVATIONS[activation];
  return MARKS[backend.condition] || 'warn';
}
const isTrouble = backend => markOf(backend) !== 'good' || backend.condition !== 'up';

// ---- Backends ----

/** The rows of one backend. They are made once and changed in place. */
class Row {
  constructor(backend) {
    this.history = [];
    this.open = false;
    const cell = (label, name = '') => make('td', { className: name, data: label ? { label } : {} });
    this.name = make('button', { type: 'button', className: 'name', ariaExpanded: 'false' });
    this.name.addEventListener('click', () => this.toggle());
    this.address = make('small', { className: 'code' });
    this.state = make('span');
    this.activation = make('span');
    this.words = make('small');
    this.reason = make('small');
    this.cells = {};
    for (const [key, label] of [['sessions', 'Sessions seen'], ['flight', 'In flight'], ['connections', 'Connections'],
      ['requests', 'Requests'], ['latency', 'Response time'], ['errors', 'Failures, last minute'], ['weight', 'Weight']])
      this.cells[key] = cell(label, key === 'errors' || key === 'requests' || key === 'flight' ? 'num' : 'num keep');
    const number = key => {
      const [main, small] = [make('span'), make('small')];
      this.cells[key].append(main, small);
      return { main, small };
    };
    this.numbers = Object.fromEntries(Object.keys(this.cells).map(key => [key, number(key)]));
    this.path = drawing('path', {});
    this.strip = drawing('g', { class: 'strip' });
    this.spark = drawing('svg', { class: 'spark', viewBox: `0 0 ${HISTORY} 22`, preserveAspectRatio: 'none', role: 'img' }, this.path, this.strip);
    this.cells.requests.append(this.spark);
    this.buttons = make('td', { className: 'do' });
    this.one = make('tr', { className: 'one' },
      make('td', { className: 'who' }, this.name, this.address),
      make('td', { className: 'how' }, make('div', { className: 'marks' }, this.state, this.activation), this.words, this.reason),
      ...Object.values(this.cells), this.buttons);
    this.one.dataset.backend = backend.name;
    this.progress = make('progress');
    this.progressWords = make('span');
    const cancel = make('button', { type: 'button', textContent: 'Cancel the drain' });
    cancel.addEventListener('click', () => change('cancel', this.backend));
    cancel.dataset.action = 'cancel';
    this.drain = make('tr', { className: 'extra drain-row', hidden: true },
      make('td', { colSpan: 10 }, make('div', { className: 'draining' }, this.progress, this.progressWords, cancel)));
    this.detail = make('div', { className: 'detail' });
    this.extra = make('tr', { className: 'extra', hidden: true }, make('td', { colSpan: 10 }, this.detail));
    this.shownActions = '';
  }

  toggle() {
    this.open = !this.open;
    this.name.ariaExpanded = String(this.open);
    this.extra.hidden = !this.open;
    if (this.open) this.drawDetail();
  }

  update(backend, writable) {
    this.backend = backend;
    const { settings, connections, rates, latency } = backend;
    setText(this.name, backend.name);
    setText(this.address, backend.name.endsWith(backend.address) ? '' : `${backend.protocol}://${backend.address}`);
    setText(this.state, backend.condition === 'ramping' ? backend.state : backend.condition);
    setClass(this.state, `pill ${MARKS[backend.condition] || 'warn'}`);
    this.activation.hidden = settings.activation === 'active';
    setText(this.activation, settings.activation === 'drain' ? 'draining' : settings.activation);
    setClass(this.activation, `pill ${ACTIVATIONS[settings.activation]}`);
    setText(this.words, backend.condition === 'out' ? backend.state.replace(/^out: /, '') : '');
    const said = backend.override;
    setText(this.reason, said ? `${said.reason ? `“${said.reason}” ` : ''}changed by ${said.by}, ${ago(said.at)}${said.until ? `; until ${day(said.until)}` : ''}` : '');
    const put = (key, main, small = '') => { setText(this.numbers[key].main, main); setText(this.numbers[key].small, small); };
    put('sessions', backend.sessions == null ? '–' : count.format(backend.sessions));
    put('flight', count.format(backend.in_flight), backend.waiting ? `${backend.waiting} wait (max ${backend.queue_max})` : '');
    put('connections', `${connections.open} / ${connections.max}`, `${connections.idle} idle`);
    put('requests', rates ? `${rate(rates.requests_s)}/s` : '–', rates ? `↑ ${bytes(rates.sent_s)}/s  ↓ ${bytes(rates.received_s)}/s` : '');
    put('latency', latency ? `p50 ${millis(latency.p50_ms)}` : '–', latency ? `p99 ${millis(latency.p99_ms)}` : '');
    const errors = Object.entries(backend.errors).filter(([, counts]) => counts.minute > 0);
    put('errors', count.format(errors.reduce((sum, [, counts]) => sum + counts.minute, 0)),
      errors.map(([reason, counts]) => `${counts.minute}× ${reason.replace(/^backend:/, '')}`).join(', '));
    setClass(this.numbers.errors.main, errors.length ? 'bad-text' : '');
    put('weight', String(settings.weight), [
      settings.weight === backend.file.weight ? '' : `file: ${backend.file.weight}`,
      settings.distance ? `distance ${settings.distance}` : ''].filter(Boolean).join(', '));
    this.drawHistory(rates ? rates.requests_s : 0, markOf(backend));
    this.drawDrain(backend.drain);
    this.drawActions(writable);
    if (this.open) this.drawDetail();
  }

  drawHistory(now, mark) {
    this.history.push([now, mark]);
    if (this.history.length > HISTORY) this.history.shift();
    const most = Math.max(1, ...this.history.map(([value]) => value));
    const left = HISTORY - this.history.length;
    this.path.setAttribute('d', this.history.map(([value], at) => `${at ? 'L' : 'M'}${left + at},${(16 - 15 * value / most).toFixed(1)}`).join(''));
    const runs = [];
    this.history.forEach(([, kind], at) => {
      const last = runs.at(-1);
      if (last && last.kind === kind) last.length += 1;
      else runs.push({ kind, at, length: 1 });
    });
    this.strip.replaceChildren(...runs.map(run => drawing('rect', {
      // Trouble is taller, so that it is seen without colours.
      class: run.kind, x: left + run.at, width: run.length, y: run.kind === 'good' ? 20 : 18, height: run.kind === 'good' ? 2 : 4,
    })));
    this.spark.setAttribute('aria-label', `requests a second over the last ${this.history.length} s, at most ${rate(most)}`);
  }

  drawDrain(drain) {
    this.drain.hidden = !drain;
    if (!drain) return;
    const { sessions_at_start: before, sessions_now: now, then, deadline, earliest, in_flight: flight } = drain;
    if (now == null) this.progress.removeAttribute('value');
    else {
      this.progress.max = Math.max(before, now, 1);
      this.progress.value = this.progress.max - now;
    }
    setText(this.progressWords, [
      now == null ? 'sessions are not counted' : `${now} of ${many(Math.max(before, now), 'session')} left`,
      `${many(flight, 'request')} in flight`,
      earliest && now ? `not before ${clock(earliest)}` : '',
      deadline ? `at the latest ${clock(deadline)}` : '',
      `then ${then}`].filter(Boolean).join('; '));
  }

  drawActions(writable) {
    const activation = this.backend.settings.activation;
    const actions = [
      activation === 'active' ? ['drain', 'Drain'] : ['activate', 'Activate'],
      activation === 'stopped' ? null : ['stop', 'Stop'],
      ['weight', 'Weight'],
      ['probe', 'Probe'],
      this.backend.override ? ['reset', 'Reset'] : null].filter(Boolean);
    const shown = JSON.stringify([actions, writable]);
    if (shown === this.shownActions) return;
    this.shownActions = shown;
    const focused = this.buttons.contains(document.activeElement) ? document.activeElement.dataset.action : null;
    this.buttons.replaceChildren(...actions.map(([action, word]) => {
      const button = make('button', { type: 'button', textContent: word, disabled: !writable, data: { action } });
      button.setAttribute('aria-label', `${word} ${this.backend.name} of ${this.backend.upstream}`);
      button.addEventListener('click', () => change(action, this.backend));
      return button;
    }));
    if (focused) (this.buttons.querySelector(`[data-action=${focused}]`) || this.buttons.firstChild).focus();
  }

  drawDetail() {
    const { backend } = this;
    const block = (title, lines) => make('div', {}, make('h4', { textContent: title }),
      make('ul', {}, ...(lines.length ? lines : ['none']).map(line => make('li', { textContent: line }))));
    const failure = backend.last_failure;
    const probe = backend.last_probe;
    const { connections: c, probes } = backend;
    const blocks = [
      block('Last failure', failure ? [
        `${failure.culprit}:${failure.token} (${failure.stage}), ${ago(failure.at)}`, failure.detail, `request ${failure.request}`] : []),
      block('Failures since the start', Object.entries(backend.errors).map(([reason, { total }]) => `${count.format(total)}× ${reason}`)),
      block('Probes', [
        `${count.format(probes.answered)} answered, ${count.format(probes.failed)} failed`,
        probe ? `last ${ago(probe.at)}: ${probe.found}` : null,
        `put out ${many(backend.ejections, 'time')}, suspect ${many(backend.suspicions, 'time')}`].filter(Boolean)),
      block('Sessions of requests', Object.entries(backend.sticky).filter(([, n]) => n).map(([outcome, n]) => `${count.format(n)} ${outcome}`)),
      block('Connections', [
        `${c.open} open, ${c.idle} idle, at most ${c.max}`, `${count.format(c.dialled)} dialled, ${count.format(c.reused)} reused, ${count.format(c.stale)} stale`]),
      block('Since the start', [
        many(backend.requests, 'attempt'), `${bytes(backend.bytes.sent)} sent, ${bytes(backend.bytes.received)} received`,
        backend.abandoned ? `${many(backend.abandoned, 'request')} left by the client, still with the backend` : null].filter(Boolean)),
      block('Of the file', [
        `${backend.protocol}://${backend.address}`, `jvm_route ${backend.jvm_route}`,
        backend.domain ? `domain ${backend.domain}` : null, backend.fallback ? `fallback ${backend.fallback}` : null,
        `${backend.file.activation}, weight ${backend.file.weight}, distance ${backend.file.distance}`].filter(Boolean)),
    ];
    const text = blocks.map(it => it.textContent).join('\n');
    if (text !== this.shownDetail || !this.detail.firstChild) {
      this.shownDetail = text;
      this.detail.replaceChildren(...blocks);
    }
  }
}

/** The panel of one upstream. */
class Panel {
  constructor(name) {
    this.rows = new Map();
    this.title = make('h3', { textContent: name });
    this.panic = make('span', { className: 'pill bad', textContent: 'panic', title: 'so much is out that backends which are unwell serve' });
    this.facts = make('div', { className: 'facts quiet' });
    this.share = make('div', { className: 'share', role: 'img' });
    this.body = make('tbody');
    const heads = ['Backend', 'State', 'Sessions', 'In flight', 'Connections', 'Requests', 'Response time', 'Failures, last minute', 'Weight', ''];
    this.table = make('table', { className: 'backends' },
      make('thead', {}, make('tr', {}, ...heads.map((text, at) => make('th', { textContent: text, scope: 'col', className: at > 1 ? 'num' : '' })))), this.body);
    this.element = make('section', { className: 'upstream', data: { upstream: name } },
      make('div', { className: 'head' }, this.title, this.panic, this.facts), this.share, this.table);
    this.element.setAttribute('aria-label', `upstream ${name}`);
  }

  update(upstream, wanted, writable) {
    this.panic.hidden = !upstream.panic;
    const { retry_budget: budget, sticky_outcomes: outcomes } = upstream;
    const kept = outcomes && Object.entries(outcomes).filter(([, n]) => n).map(([word, n]) => `${short.format(n)} ${word}`).join(', ');
    const facts = [
      upstream.policy,
      outcomes ? `sticky${kept ? `: ${kept}` : ''}` : 'not sticky',
      `${many(upstream.retries, 'retry', 'retries')} a request, ${count.format(budget.left)} of ${count.format(budget.max)} in the budget`];
    if (this.facts.textContent !== facts.join('')) this.facts.replaceChildren(...facts.map(text => make('div', { textContent: text })));
    const backends = upstream.backends;
    const shown = backends.filter(wanted);
    this.element.hidden = shown.length === 0;
    this.drawShare(backends);
    const names = new Set(backends.map(it => it.name));
    for (const name of this.rows.keys()) if (!names.has(name)) this.remove(name);
    for (const backend of backends) {
      let row = this.rows.get(backend.name);
      if (!row) {
        row = new Row(backend);
        this.rows.set(backend.name, row);
        this.body.append(row.one, row.drain, row.extra);
      }
      row.update(backend, writable);
      const isShown = shown.includes(backend);
      row.one.hidden = !isShown;
      row.drain.hidden ||= !isShown;
      row.extra.hidden = !(isShown && row.open);
    }
    return shown.length;
  }

  remove(name) {
    const { one, drain, extra } = this.rows.get(name);
    [one, drain, extra].forEach(it => it.remove());
    this.rows.delete(name);
  }

  drawShare(backends) {
    while (this.share.children.length > backends.length) this.share.lastChild.remove();
    while (this.share.children.length < backends.length) this.share.append(make('span'));
    backends.forEach((backend, at) => {
      const part = this.share.children[at];
      setClass(part, markOf(backend));
      part.style.flexGrow = backend.settings.weight;
      part.title = `${backend.name}: ${backend.state}, weight ${backend.settings.weight}`;
    });
    const up = backends.filter(it => markOf(it) === 'good').length;
    this.share.setAttribute('aria-label', `${up} of ${backends.length} backends are up and active`);
  }
}

// ---- Drawing all ----

const panels = new Map();
let status = null;

function draw() {
  if (!status) return;
  const text = $('filter').value.trim().toLowerCase();
  const only = $('only-trouble').checked;
  const wanted = backend => (!only || isTrouble(backend))
    && (!text || `${backend.upstream}/${backend.name} ${backend.address}`.toLowerCase().includes(text));
  let shown = 0;
  const names = new Set(status.upstreams.map(it => it.name));
  for (const [name, panel] of panels) if (!names.has(name)) { panel.element.remove(); panels.delete(name); }
  for (const upstream of status.upstreams) {
    let panel = panels.get(upstream.name);
    if (!panel) {
      panel = new Panel(upstream.name);
      panels.set(upstream.name, panel);
      $('list').append(panel.element);
    }
    shown += panel.update(upstream, wanted, !status.read_only);
  }
  $('none').hidden = shown > 0;
  drawHeader();
  drawRetired();
  drawFlight();
}

function drawHeader() {
  setText($('version'), status.version);
  const [word, mark] = status.draining ? ['draining', 'drain'] : status.leaving ? ['about to drain', 'drain'] : status.ready ? ['ready', 'good'] : ['no backend serves', 'bad'];
  setText($('ready'), word);
  setClass($('ready'), `pill ${mark}`);
  const backends = status.upstreams.flatMap(it => it.backends);
  const perSecond = backends.reduce((sum, it) => sum + (it.rates?.requests_s || 0), 0);
  const facts = {
    requests: `${rate(perSecond)}/s`,
    total: short.format(status.requests),
    '5xx': short.format(status.responses['5xx']),
    clients: count.format(status.connections.open),
    up: span(status.uptime_s),
    configuration: `${status.generation}${status.read_only ? ', read only' : ''}`,
  };
  const totals = $('totals');
  for (const [name, value] of Object.entries(facts)) {
    let entry = totals.querySelector(`[data-fact="${name}"]`);
    if (!entry) totals.append(entry = make('div', { data: { fact: name } }, make('dt', { textContent: name }), make('dd')));
    setText(entry.lastChild, value);
  }
}

/** Makes so many rows of so many cells of it. */
function fit(rows, length, cells) {
  while (rows.children.length > length) rows.lastChild.remove();
  while (rows.children.length < length) rows.append(make('tr', {}, ...Array.from({ length: cells }, () => make('td'))));
}

function drawRetired() {
  const { retired } = status;
  $('retired').hidden = retired.length === 0;
  const rows = $('retired-rows');
  fit(rows, retired.length, 4);
  retired.forEach((backend, at) => {
    const [name, address, flight, connections] = rows.children[at].children;
    setText(name, `${backend.upstream}/${backend.name}`);
    setText(address, `${backend.protocol}://${backend.address}`);
    setText(flight, count.format(backend.in_flight));
    setText(connections, `${backend.connections.open} / ${backend.connections.max}`);
    [flight, connections].forEach(it => setClass(it, 'num'));
  });
}

function drawFlight() {
  const { count: total, slowest } = status.in_flight;
  setText($('flight-count'), many(total, 'request'));
  const rows = $('flight-rows');
  fit(rows, slowest.length, 5);
  slowest.forEach((request, at) => {
    const [age, phase, what, where, id] = rows.children[at].children;
    setText(age, millis(request.age_ms));
    setClass(age, request.age_ms >= SLOW_MS ? 'num slow' : 'num');
    setText(phase, request.phase);
    setText(what, `${request.method} ${request.path}${request.path_cut ? '…' : ''}`);
    setText(where, request.backend ? `${request.upstream}/${request.backend}` : '–');
    setText(id, request.id);
    setClass(id, 'code');
  });
}

let events = [];
function drawEvents() {
  const kind = $('events-kind').value;
  const shown = events.filter(event => !kind || event.kind === kind);
  $('events-rows').replaceChildren(...shown.map(event => make('li', {},
    make('time', { dateTime: event.at, title: event.at, textContent: clock(event.at) }),
    make('span', { className: event.kind, textContent: event.kind }),
    make('span', { textContent: `${event.upstream}/${event.backend}: ${event.text}` }))));
}

// ---- Polling ----

let timer = 0;
let asking = false;
let lastAnswer = 0;

async function poll() {
  if (asking) return;
  asking = true;
  clearTimeout(timer);
  try {
    status = await ask('GET', 'status');
    serverNow = Date.parse(status.now);
    lastAnswer = Date.now();
    const last = events.length ? events[0].number : 0;
    const more = (await ask('GET', `events?after=${last}`)).events;
    if (last && more.length && more[0].number > last + 1) events = [];
    if (more.length) {
      events = [...more.reverse(), ...events].slice(0, EVENTS_MAX);
      drawEvents();
    }
    trouble('');
    draw();
  } catch (error) {
    await explainTrouble(error);
  } finally {
    asking = false;
    if (!document.hidden) timer = setTimeout(poll, PERIOD_MS);
  }
}

async function explainTrouble(error) {
  if (error instanceof Refused && error.status === 401) {
    trouble('The front wants its token before it shows anything.');
    if (!$('token').open && !askedForToken) openToken(token ? error.message : '');
    askedForToken = true;
    return;
  }
  const since = lastAnswer ? ` What is shown is from ${clock(lastAnswer)}.` : '';
  trouble(error instanceof Refused ? error.message : `The front does not answer.${since} Asking again each second.`);
}

function trouble(text) {
  $('trouble').hidden = !text;
  setText($('trouble'), text);
  document.body.classList.toggle('stale', Boolean(text));
}

// ---- Changes ----

/** What each action does, in words, and its request. */
const CHANGES = {
  drain: {
    title: b => `Drain ${b.name}`,
    effect: b => `${b.name} gets no new sessions from now on. ${b.sessions === 1 ? 'Its one session stays with it until it ends' : `${b.sessions == null ? 'Its own sessions' : `Its ${many(b.sessions, 'session')}`} stay with it until they end`}.`,
    fields: b => [
      choice('then', 'When nothing is left, it is', [['stopped', 'stopped'], ['active', 'active again'], ['', 'left draining']]),
      line('deadline', 'At the latest', '2h', 'a time from now, or empty: however long it takes'), ...common(b)],
    body: form => {
      const body = { activation: 'drain', ...commonOf(form) };
      if (form.then.value) body.then = form.then.value;
      if (form.then.value && form.deadline.value.trim()) body.deadline = form.deadline.value.trim();
      return body;
    },
  },
  cancel: {
    title: b => `Cancel the drain of ${b.name}`,
    effect: b => `${b.name} takes new sessions again.`,
    body: () => ({ activation: 'active' }),
  },
  stop: {
    title: b => `Stop ${b.name}`,
    effect: b => `${b.name} gets no requests from now on, not even of its own sessions: ${b.sessions == null ? 'sessions that only it has' : `as many of its ${many(b.sessions, 'session')} as only it has`} are lost. ${b.in_flight === 1 ? 'One request in flight ends' : `${count.format(b.in_flight)} requests in flight end`} first.`,
    danger: true,
    fields: common,
    body: form => ({ activation: 'stopped', ...commonOf(form) }),
  },
  activate: {
    title: b => `Activate ${b.name}`,
    effect: b => `${b.name} takes new sessions, by its weight of ${b.settings.weight}.`,
    fields: common,
    body: form => ({ activation: 'active', ...commonOf(form) }),
  },
  weight: {
    title: b => `Weight of ${b.name}`,
    effect: b => `Its share of what is new changes, in proportion to the weights of the others. The file says ${b.file.weight}.`,
    fields: b => [line('weight', 'Weight', '', 'a whole number from 1', { type: 'number', min: 1, step: 1, required: true, value: b.settings.weight }), ...common(b)],
    body: form => ({ weight: Number(form.weight.value), ...commonOf(form) }),
  },
  reset: {
    title: b => `Reset ${b.name}`,
    effect: b => `What was changed while the front runs is dropped. The file's settings hold again: ${b.file.activation}, weight ${b.file.weight}, distance ${b.file.distance}.`,
    method: 'POST', path: 'reset',
  },
  probe: {
    title: b => `Probe ${b.name}`,
    effect: b => `${b.name} is asked at once whether it is well. The answer counts like that of any probe.`,
    method: 'POST', path: 'probe',
  },
};

function line(name, label, placeholder, hint, properties = {}) {
  const input = make('input', { name, placeholder, autocomplete: 'off', ...properties });
  return make('label', { className: 'wide' }, label, input, hint ? make('span', { className: 'hint', textContent: hint }) : null);
}
function choice(name, legend, options) {
  return make('fieldset', {}, make('legend', { textContent: legend }), ...options.map(([value, word], at) =>
    make('label', {}, make('input', { type: 'radio', name, value, checked: at === 0 }), word)));
}
function common(backend) {
  return [
    line('reason', 'Reason', 'a text for colleagues', '', { maxLength: 200, value: backend.override?.reason || '' }),
    line('until', 'Take everything back', '1h', 'a time from now, or empty: it stays')];
}
function commonOf(form) {
  const body = {};
  if (form.reason.value.trim()) body.reason = form.reason.value.trim();
  if (form.until.value.trim()) body.until = form.until.value.trim();
  return body;
}

let changing = null;

function change(action, backend) {
  changing = { action, backend, version: backend.version };
  const what = CHANGES[action];
  setText($('change-title'), `${what.title(backend)} of ${backend.upstream}`);
  setText($('change-effect'), what.effect(backend));
  $('change-fields').replaceChildren(...(what.fields?.(backend) || []));
  changeError('');
  setText($('change-go'), what.title(backend));
  setClass($('change-go'), what.danger ? 'main danger' : 'main');
  $('change-go').disabled = false;
  $('change').showModal();
}

function changeError(text) {
  $('change-error').hidden = !text;
  setText($('change-error'), text);
}

async function go() {
  const { action, backend, version } = changing;
  const what = CHANGES[action];
  const form = $('change').querySelector('form').elements;
  const body = what.body ? what.body(form) : undefined;
  if (body && form.force?.checked) body.force = true;
  $('change-go').disabled = true;
  try {
    await ask(what.method || 'PATCH', pathOf(backend) + (what.path ? `/${what.path}` : ''), body, version);
    $('change').close();
    poll();
  } catch (error) {
    await recover(error, what);
  } finally {
    $('change-go').disabled = false;
  }
}

/** Says why a change was refused, and makes ready to try again. */
async function recover(error, what) {
  if (!(error instanceof Refused)) return changeError('The front does not answer. Nothing is known of the change; look at the state before you try again.');
  if (error.token === 'stale') {
    try {
      const now = await ask('GET', pathOf(changing.backend));
      const said = now.override;
      changing.backend = now;
      changing.version = now.version;
      setText($('change-effect'), what.effect(now));
      changeError(`Somebody changed ${now.name} meanwhile${said ? ` (${said.by}${said.reason ? `: “${said.reason}”` : ''})` : ''}: it is ${now.settings.activation} now, with weight ${now.settings.weight}. Nothing was changed by you. Confirm again if you still mean it.`);
    } catch (again) { changeError(again.message); }
    return;
  }
  changeError(`Refused: ${error.message}.`);
  if (error.token === 'last-backend' && what.body && !$('change').querySelector('[name=force]'))
    $('change-fields').append(make('label', {}, make('input', { type: 'checkbox', name: 'force' }), 'do it all the same: new sessions will be answered 503'));
  if (error.status === 401) { $('change').close(); openToken(error.message); }
}

// ---- Token ----

let askedForToken = false;

function openToken(error) {
  $('token-error').hidden = !error;
  setText($('token-error'), error ? `Refused: ${error}.` : '');
  $('token-text').value = token;
  $('token').showModal();
}

function useToken(text) {
  token = text.trim();
  if (token) sessionStorage.setItem('token', token);
  else sessionStorage.removeItem('token');
  $('token').close();
  setText($('token-open'), token ? 'Token ✓' : 'Token');
  askedForToken = false;
  poll();
}

// ---- Explain ----

function explained(it) {
  const part = (title, ...children) => make('div', {}, make('h3', { textContent: title }), ...children);
  const text = (value, className = '') => make('div', { textContent: value, className });
  const pairs = rows => make('div', { className: 'pairs' }, ...rows.flatMap(([name, value]) => [
    make('span', { className: 'quiet', textContent: name }), make('span', { className: 'code', textContent: value })]));
  const route = r => [
    [r.listen?.length ? `on ${r.listen.join(', ')}` : '', r.scheme ? `${r.scheme}:` : '', r.hosts.join(' '), r.pattern || r.path + (r.exact ? ' (exact)' : '') + (r.suffix ? ` *${r.suffix}` : '')].filter(Boolean).join(' '),
    `→ ${r.target}`, r.place ? `(${r.place})` : ''].filter(Boolean).join(' ');
  const parts = [text(it.summary, 'summary')];
  if (it.answer) parts.push(part('Answer of the front', text(`${it.answer.status} ${it.answer.reason}: ${it.answer.text}${it.answer.location ? ` → ${it.answer.location}` : ''}`)));
  const left = [];
  const right = [];
  if (it.path) left.push(part('Path', pairs(['received', 'normal', 'compared', 'forwarded'].map(name => [name, it.path[name]]))));
  left.push(part('Route', text(it.route ? route(it.route) : 'none matches', 'code')));
  if (it.others?.length) left.push(part('Next best, and why not', make('ul', {}, ...it.others.map(other =>
    make('li', {}, make('span', { className: 'code', textContent: route(other) }), make('span', { className: 'quiet', textContent: ` ${other.why_not || ''}` }))))));
  if (it.rewrite) left.push(part('Rewrite', text(it.rewrite, 'code')));
  if (it.affinity) left.push(part(`Session: ${it.affinity.outcome}`, make('ol', {}, ...it.affinity.steps.map(step =>
    make('li', {}, make('span', { className: 'code', textContent: [step.source, step.value].filter(Boolean).join(' ') }), ` ${step.text || ''}`)))));
  if (it.members?.length) right.push(part(`Backends of ${it.upstream.name} (${it.upstream.policy})${it.by ? `: by ${it.by}` : ''}`,
    make('div', {}, ...it.members.map(member => {
      const bar = make('span');
      bar.style.width = `${member.share}%`;
      return make('div', {}, make('span', { className: 'meter' }, bar), `${member.share} % ${member.backend}`,
        make('span', { className: 'quiet', textContent: member.why_not ? ` – ${member.why_not}` : '' }));
    }))));
  if (it.sent) {
    right.push(part(`Sent to ${it.sent.backend} at ${it.sent.protocol}://${it.sent.address}`, text(it.sent.request, 'code'), pairs(it.sent.fields || [])));
    if (it.sent.attributes?.length) right.push(part('Attributes', pairs(it.sent.attributes)));
    if (it.sent.set_cookie) right.push(part('Cookie for the client', text(it.sent.set_cookie, 'code')));
    right.push(part('Limits', pairs([...(it.sent.timeouts || []), ['retries', String(it.sent.retries)]])));
  }
  parts.push(make('div', { className: 'halves' },
    make('div', {}, ...left), make('div', {}, ...right)));
  return parts;
}

async function explain(event) {
  event.preventDefault();
  const form = $('explain-form').elements;
  const query = new URLSearchParams({ url: form.url.value.trim() });
  for (const name of ['method', 'from']) if (form[name].value.trim()) query.set(name, form[name].value.trim());
  for (const field of form.header.value.split('\n')) if (field.trim()) query.append('header', field.trim());
  const into = $('explained');
  try {
    into.replaceChildren(...explained(await ask('GET', `explain?${query}`)));
  } catch (error) {
    const text = error instanceof Refused ? error.message : 'The front does not answer.';
    into.replaceChildren(make('p', { className: 'error', textContent: text }));
  }
}

// ---- Beginning ----

$('filter').addEventListener('input', draw);
$('only-trouble').addEventListener('change', draw);
$('events-kind').addEventListener('change', drawEvents);
$('explain-form').addEventListener('submit', explain);
$('change').querySelector('form').addEventListener('submit', event => { event.preventDefault(); go(); });
$('change-cancel').addEventListener('click', () => $('change').close());
$('token').querySelector('form').addEventListener('submit', event => { event.preventDefault(); useToken($('token-text').value); });
$('token-cancel').addEventListener('click', () => $('token').close());
$('token-forget').addEventListener('click', () => useToken(''));
$('token-open').addEventListener('click', () => openToken(''));
document.addEventListener('visibilitychange', () => { if (!document.hidden) poll(); });
setText($('token-open'), token ? 'Token ✓' : 'Token');
poll();
