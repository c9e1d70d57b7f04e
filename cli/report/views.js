// When each part of the page is drawn. A view is an element and what draws it. Views off screen wait
// until they come near; a view that changes of the data concern is drawn at most once a second, one
// that the reader changed with the next frame; a frame draws one view, or more while it has time.
'use strict';

const kPause = 1000;       // ms between two drawings of a view, or more:
const kCostShare = 0.04;   // at most, of all time, for one view
const kFrameShare = 12;    // ms of a frame after which no other view is drawn in it
const kNear = '300px';     // of the window: in view

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {() => Iterator<void> | undefined | void} draw  may return an iterator, each step of which is a frame's work
 * @property {() => Iterator<void> | void} renew  shows another selection or theme
 * @property {string[]} parts  of the document that it shows
 * @property {(trial: TrialRow) => boolean} is_of  whether it shows a trial
 * @property {() => boolean} is_there  whether there is anything to show
 * @property {boolean} near  in view, or nearly
 * @property {'draw' | 'renew' | null} todo
 * @property {boolean} at_once  the reader waits for it
 * @property {Iterator<void> | null} work  that is left
 * @property {number} drawn_at
 * @property {number} cost  ms of the last drawing
 */

/** @type {Map<Element, View>} */
const views = new Map();   // element to view
let next_frame = 0;
let next_time = 0;         // timer of the first view that may be drawn again
let idle_asked = false;
let is_observed = false;   // whether it is known what is in view

const observer = new IntersectionObserver((entries) => {
  is_observed = true;
  for (const entry of entries) {
    const view = views.get(entry.target);
    if (view) view.near = entry.isIntersecting;
  }
  plan_drawing();
}, {rootMargin: kNear});

/**
 * @param {HTMLElement} element
 * @param {Partial<View> & Pick<View, 'draw'>} view
 */
function add_view(element, view) {
  views.set(element, {element, parts: [], is_of: () => false, is_there: () => true, renew: () => {},
    near: false, todo: 'draw', at_once: true, work: null, drawn_at: -Infinity, cost: 0, ...view});
  observer.observe(element);
}

function remove_view(element) {
  observer.unobserve(element);
  views.delete(element);
}

/**
 * @param {HTMLElement} element
 * @param {Partial<View> & Pick<View, 'draw'>} view
 */
function chart_view(element, view) {
  add_view(element, {renew: () => renew_chart(element), ...view});
}

/**
 * @param {View} view
 * @param {'draw' | 'renew'} todo
 * @param {boolean} at_once
 */
function mark_view(view, todo, at_once) {
  if (view.todo !== 'draw') view.todo = todo;
  if (!at_once) return;
  view.at_once = true;
  view.work = null;
}

function mark_all(todo) {
  for (const view of views.values()) mark_view(view, todo, true);
  hide_empty();
  plan_drawing();
}

function draw_soon(element) {
  mark_view(views.get(element), 'draw', true);
  plan_drawing();
}

// Marks what shows a part that changed, or a trial as it was or is.
/**
 * @param {Set<string>} parts
 * @param {Merged[]} merged
 */
function mark_changes(parts, merged) {
  for (const view of views.values()) {
    const touched = view.parts.some((part) => parts.has(part)) ||
      merged.some(({trial, before}) => view.is_of(trial) || (before && view.is_of(before)));
    if (touched) mark_view(view, 'draw', false);
  }
  hide_empty();
  plan_drawing();
}

function hide_empty() {
  for (const view of views.values()) view.element.hidden = !view.is_there();
  fill_rows();
}

// A last card without a neighbour takes the whole row.
function fill_rows() {
  const shown = [...document.querySelectorAll('.grid > section')].filter((section) => !section.hidden);
  shown.forEach((section, i) =>
    section.classList.toggle('whole', i === shown.length - 1 && shown.length % 2 === 1));
}

/** @param {View} view */
function due_at(view) {
  return view.at_once || view.work ? -Infinity : view.drawn_at + Math.max(kPause, view.cost / kCostShare);
}

/** @param {View} view */
function is_waiting(view) {
  return (view.todo !== null || view.work !== null) && !view.element.hidden;
}

// A part of the drawing, or all.
/** @param {View} view */
function draw_view(view) {
  const began = performance.now();
  if (!view.work) {
    view.drawn_at = began;
    view.cost = 0;
    view.at_once = false;
    const todo = view.todo;
    view.todo = null;
    view.work = (todo === 'draw' ? view.draw() : view.renew()) || null;
  }
  if (view.work?.next().done) view.work = null;
  view.cost += performance.now() - began;
}

function draw_frame() {
  next_frame = 0;
  const began = performance.now();
  const due = [...views.values()].filter((view) => view.near && is_waiting(view) && due_at(view) <= began);
  due.sort((a, b) => Number(b.at_once) - Number(a.at_once) || a.drawn_at - b.drawn_at);
  for (const view of due) {
    draw_view(view);
    if (performance.now() - began > kFrameShare) break;
  }
  plan_drawing();
}

function plan_drawing() {
  if (next_frame !== 0 || !is_observed) return;
  clearTimeout(next_time);
  const waiting = [...views.values()].filter(is_waiting);
  const times = waiting.filter((view) => view.near).map(due_at);
  const wait = Math.min(...times) - performance.now();
  const ask_for_frame = () => (next_frame = requestAnimationFrame(draw_frame));
  if (wait <= 0) {
    ask_for_frame();
    return;
  }
  if (times.length > 0) next_time = setTimeout(ask_for_frame, wait);
  draw_when_idle();
}

// What was never drawn is drawn once nothing else is to do: to be found, read out and printed.
function draw_when_idle() {
  const undrawn = () => [...views.values()].find((view) =>
    is_waiting(view) && (view.drawn_at === -Infinity || view.work));
  if (idle_asked) return;
  if (!undrawn()) {
    tell_drawn();
    return;
  }
  idle_asked = true;
  const ask = window.requestIdleCallback ?? ((action) => setTimeout(action, 50));
  ask(() => {
    idle_asked = false;
    const view = undrawn();
    if (view) draw_view(view);
    plan_drawing();
  });
}

// Draws all that waits, on screen or not.
function draw_now() {
  for (const view of views.values()) while (is_waiting(view)) draw_view(view);
  tell_drawn();
}

// Tests look for this: everything was drawn, and nothing in the window waits to be drawn again.
function tell_drawn() {
  const waits = [...views.values()].some((view) => view.near && is_waiting(view));
  if (data && !waits) document.documentElement.dataset.drawn = String(drawn.size);
}
