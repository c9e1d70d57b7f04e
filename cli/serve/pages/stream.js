// The stream of events that a page follows, and the banner that says when something is wrong with
// it. Events: feeds/study_feed.h and feeds/list_feed.h.
'use strict';

/** @type {Map<string, string>} */
const banners = new Map();  // kind to sentence; the first one is shown

function show_banner(kind, text) {
  if (text) banners.set(kind, text);
  else banners.delete(kind);
  let banner = document.getElementById('banner');
  if (!banner) {
    banner = document.createElement('div');
    banner.id = 'banner';
    banner.setAttribute('role', 'status');
    document.querySelector('main').before(banner);
  }
  const [shown] = banners;
  banner.hidden = !shown;
  if (!shown) return;
  banner.className = shown[0];
  banner.textContent = shown[1];
}

// A pill in the head line: whether the page follows.
/** @param {boolean} is_followed */
function show_following(is_followed) {
  const sign = document.getElementById('following');
  if (!sign) return;
  sign.classList.toggle('lost', !is_followed);
  sign.textContent = is_followed ? 'live' : 'not connected';
}

/** @param {{code: string, message: string}} trouble */
function show_trouble({code, message}) {
  const begin = code === 'forbidden' ? 'You may not see this: ' : 'This is as it was; it cannot be read now: ';
  show_banner('trouble', message ? begin + message : '');
}

// Follows `url`.
/**
 * @param {string} url
 * @param {Object<string, (data: any) => void>} listeners  an event's name to what is done with its data
 * @returns {EventSource}
 */
function open_stream(url, listeners) {
  const stream = new EventSource(url);
  stream.addEventListener('open', () => {
    show_banner('lost', '');
    show_following(true);
  });
  stream.addEventListener('error', () => {
    show_following(false);
    if (stream.readyState !== EventSource.CLOSED) {
      show_banner('lost', 'The connection was lost. Trying again …');
      return;
    }
    // An answer that is no stream: another server has the address now, with another token.
    show_banner('lost', 'The server of this page has ended. Open the address that fettle serve prints when it ' +
      'is started again.');
    setTimeout(() => open_stream(url, listeners), 5000);
  });
  for (const [name, listener] of Object.entries({trouble: show_trouble, ...listeners})) {
    stream.addEventListener(name, (event) => listener(JSON.parse(event.data)));
  }
  return stream;
}
