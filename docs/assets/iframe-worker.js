// The search of a page runs in a Worker. Browsers refuse a Worker to a page that was opened from the disk, and there it runs in a
// hidden frame, which has the same origin as the page.
if (location.protocol === "file:") {
    window.Worker = class extends EventTarget {
        constructor(url) {
            super();
            const frame = document.createElement("iframe");
            frame.hidden = true;
            document.body.appendChild(frame);
            const inside = frame.contentWindow;
            inside.document.open();
            inside.document.write("<!doctype html><body></body>");
            inside.document.close();
            inside.postMessage = (data) => this.tell(new MessageEvent("message", { data }));
            inside.importScripts = (...urls) => urls.reduce((before, next) => before.then(() => this.load(next)), Promise.resolve());
            this.inside = inside;
            this.ready = this.load(url).catch((error) => this.tell(new ErrorEvent("error", { error })));
        }

        load(url) {
            return new Promise((resolve, reject) => {
                const script = this.inside.document.createElement("script");
                script.src = new URL(url, location.href).href;
                script.onload = resolve;
                script.onerror = () => reject(new Error(`${url} cannot be loaded`));
                this.inside.document.body.appendChild(script);
            });
        }

        tell(event) {
            const handler = this["on" + event.type];
            if (handler) handler.call(this, event);
            this.dispatchEvent(event);
        }

        postMessage(data) {
            this.ready.then(() => this.inside.dispatchEvent(new MessageEvent("message", { data })));
        }

        terminate() {
            this.inside.frameElement.remove();
        }
    };
}
