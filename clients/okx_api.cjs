// npm `okx-api`: REST, the two WebSockets, and orders over the private one. `node okx_api.cjs trade|cut`
'use strict';

// Node 18 has it under this name only.
globalThis.crypto ??= require('node:crypto').webcrypto;

const { RestClient, WebsocketAPIClient, WebsocketClient } = require('okx-api');

const INSTRUMENT = 'BTC-USDT';
const PATIENCE_MS = 20_000;
const at = JSON.parse(process.env.TICKPATH_EXCHANGE);
const keys = { apiKey: at.key, apiSecret: at.secret, apiPass: at.passphrase };
const rest = new RestClient({ ...keys, baseUrl: at.rest });
// Standard output has the steps alone.
const logger = { trace() {}, info() {}, error: (...words) => console.error(...words) };

/** Prints a step that held, with what it has seen. */
function step(name, facts = {}) {
  console.log(JSON.stringify({ step: name, ...facts }));
}

/** Fails unless the condition holds. */
function check(holds, why, seen = '') {
  if (!holds) throw new Error(`${why}: ${JSON.stringify(seen)}`);
}

/** Returns the only row of a list. */
function only(rows, what) {
  check(rows.length === 1, `expected one ${what}, not ${rows.length}`, rows);
  return rows[0];
}

/** Returns a number with as many decimals as the step of its grid, rounded down to the grid. */
function onGrid(number, grid) {
  const decimals = (String(grid).split('.')[1] ?? '').length;
  // The small addend makes up for the rounding of the division: 0.3 / 0.1 is 2.9999999999999996.
  return (Math.floor(number / Number(grid) + 1e-9) * Number(grid)).toFixed(decimals);
}

/** Returns a message as JSON; events of a socket refer to themselves, and are empty. */
function plain(message) {
  try {
    return JSON.parse(JSON.stringify(message));
  } catch {
    return {};
  }
}

/** Messages of a client, in their order. */
class Inbox {
  messages = [];
  waiting = new Set();

  put(kind, message) {
    this.messages.push({ kind, message: plain(message) });
    for (const look of this.waiting) look();
  }

  /** Returns the first message of a kind that is wanted, and waits for it if there is none. */
  find(what, kind, isWanted, from = 0) {
    return new Promise((resolve, reject) => {
      const look = () => {
        const found = this.messages.slice(from).find((one) => one.kind === kind && isWanted(one.message));
        if (!found) return;
        end();
        resolve(found.message);
      };
      const timer = setTimeout(() => {
        end();
        reject(new Error(`no ${what} came; the last messages: ${JSON.stringify(this.messages.slice(-5))}`));
      }, PATIENCE_MS);
      const end = () => {
        clearTimeout(timer);
        this.waiting.delete(look);
      };
      this.waiting.add(look);
      look();
    });
  }

  /** Takes the events of a client. */
  listen(client) {
    for (const kind of ['open', 'update', 'response', 'exception', 'reconnect', 'reconnected']) {
      client.on(kind, (message) => this.put(kind, message));
    }
    return client;
  }

  /** Waits for the acknowledgement of a subscription. */
  subscribed(channel, from = 0) {
    const isWanted = (message) => message.event === 'subscribe' && message.arg.channel === channel;
    return this.find(`subscription to ${channel}`, 'response', isWanted, from);
  }

  /** Waits for data of a channel. */
  data(channel, isWanted = () => true, from = 0) {
    const hasRow = (message) => message.arg.channel === channel && message.data.some((row) => isWanted(row, message));
    return this.find(`data of ${channel}`, 'update', hasRow, from);
  }

  /** Waits for an order in a state, and returns its row. */
  async order(ordId, state, from = 0) {
    const isWanted = (row) => row.ordId === ordId && row.state === state;
    return (await this.data('orders', isWanted, from)).data.find(isWanted);
  }
}

/** Returns the facts with which orders are made. */
async function terms() {
  const instrument = only(await rest.getInstruments({ instType: 'SPOT', instId: INSTRUMENT }), INSTRUMENT);
  const ticker = only(await rest.getTicker({ instId: INSTRUMENT }), 'ticker');
  const tick = instrument.tickSz;
  const far = onGrid(Number(ticker.bidPx) * 0.9, tick);
  // A hundred times the smallest, of which a fee is not rounded away.
  const sz = onGrid(Number(instrument.minSz) * 100, instrument.lotSz);
  return {
    instrument,
    order: { instIdCode: instrument.instIdCode, tdMode: 'cash', side: 'buy', ordType: 'limit', sz },
    far,
    lower: onGrid(Number(far) - Number(tick), tick),
    near: onGrid(Number(ticker.askPx) * 1.01, tick),
  };
}

/** Opens the private WebSocket, logs on, and subscribes to orders. */
async function privateSocket(inbox) {
  const options = { accounts: [keys], wsUrl: `${at.ws}/ws/v5/private`, attachEventListeners: false };
  const api = new WebsocketAPIClient(options, logger);
  inbox.listen(api.getWSClient());
  api.getWSClient().subscribe({ channel: 'orders', instType: 'SPOT' });
  await inbox.find('logon', 'response', (message) => message.event === 'login' && message.code === '0');
  await inbox.subscribed('orders');
  return api;
}

/** Returns the acknowledgement of an order. */
function acknowledged(answer) {
  const row = only(answer.data, 'acknowledgement');
  check(answer.code === '0' && row.sCode === '0', 'the exchange has refused an order', answer);
  return row;
}

/** Returns the open orders with a client's id. */
async function openOrders(clOrdId) {
  return (await rest.getOrderList({ instType: 'SPOT' })).filter((order) => order.clOrdId === clOrdId);
}

async function trade() {
  const { instrument, order, far, lower, near } = await terms();
  check((await rest.getBalance()).length === 1, 'the account has a balance');
  step('load', { instrument: instrument.instId, code: instrument.instIdCode });

  const market = new Inbox();
  const socket = market.listen(new WebsocketClient({ wsUrl: `${at.ws}/ws/v5/public` }, logger));
  socket.subscribe(['tickers', 'books', 'trades'].map((channel) => ({ channel, instId: INSTRUMENT })));
  for (const channel of ['tickers', 'books', 'trades']) await market.subscribed(channel);
  await market.data('tickers');
  await market.data('books', (row, message) => message.action === 'snapshot' && row.prevSeqId === -1);
  step('subscribe');

  const orders = new Inbox();
  const api = await privateSocket(orders);
  step('login');

  const { ordId } = acknowledged(await api.submitNewOrder({ ...order, px: far, clOrdId: 'npmokx1' }));
  await orders.order(ordId, 'live');
  only(await openOrders('npmokx1'), 'open order');
  step('place', { order: ordId });

  acknowledged(await api.amendOrder({ instIdCode: instrument.instIdCode, ordId, newPx: lower }));
  await orders.data('orders', (row) => row.ordId === ordId && Number(row.px) === Number(lower));
  const amended = only(await rest.getOrderDetails({ instId: INSTRUMENT, ordId }), 'order');
  check(Number(amended.px) === Number(lower) && amended.state === 'live', 'the price is amended', amended);
  step('amend', { price: amended.px });

  acknowledged(await api.cancelOrder({ instIdCode: instrument.instIdCode, ordId }));
  await orders.order(ordId, 'canceled');
  check((await openOrders('npmokx1')).length === 0, 'no order is open');
  step('cancel');

  // By REST, which takes the instrument's name.
  const { instIdCode, ...named } = order;
  const filled = only(await rest.submitOrder({ ...named, instId: INSTRUMENT, px: near, clOrdId: 'npmokx2' }), 'answer');
  const fill = await orders.order(filled.ordId, 'filled');
  check(Number(fill.fillFee) < 0 && ['BTC', 'USDT'].includes(fill.fillFeeCcy), 'the fill has its fee', fill);
  check(fill.execType === 'T' && fill.tradeId !== '', 'the order has taken', fill);
  await market.data('trades', (row) => Number(row.px) === Number(fill.fillPx));
  await market.data('books', (row, message) => message.action === 'update');
  step('fill', { price: fill.fillPx, fee: fill.fillFee, currency: fill.fillFeeCcy });

  const fills = await rest.getFills({ instType: 'SPOT', ordId: filled.ordId });
  const listed = fills.find((row) => row.tradeId === fill.tradeId);
  check(listed && Number(listed.fee) === Number(fill.fillFee), 'the fill is listed with its fee', fills);
  check((await openOrders('npmokx2')).length === 0, 'a filled order is not open');
  step('list', { fills: fills.length });
}

/** The exchange cuts the connection behind the acknowledgement of each order; the client connects anew by itself. */
async function cut() {
  const { order, far } = await terms();
  const orders = new Inbox();
  const api = await privateSocket(orders);
  const { ordId } = acknowledged(await api.submitNewOrder({ ...order, px: far, clOrdId: 'npmokxcut' }));
  await orders.find('cut', 'reconnect', () => true);
  const from = orders.messages.findIndex((one) => one.kind === 'reconnect');
  step('cut', { order: ordId });

  await orders.find('connection', 'reconnected', () => true, from);
  await orders.subscribed('orders', from);
  const found = only(await openOrders('npmokxcut'), 'open order');
  check(found.ordId === ordId, 'the order is placed', found);
  await rest.cancelOrder({ instId: INSTRUMENT, ordId });
  await orders.order(ordId, 'canceled', from);
  step('reconnect', { order: ordId });
}

const phases = { trade, cut };
phases[process.argv[2]]().then(
  () => process.exit(0),
  (error) => {
    console.error(error);
    process.exit(1);
  },
);
