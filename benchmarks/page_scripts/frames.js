// Runs in the page. Moves the picture with real events, one step a frame, and reads a pixel of the squares back after each,
// which waits until the frame is drawn. Every measurement answers with how many frames, how many
// milliseconds, and for how many of the frames the squares were redrawn.

(() => {
  const picture = document.querySelector("[role=application]");
  const squares = () => picture.querySelectorAll("canvas")[1];
  const nextFrame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const pixel = new Uint8Array(4);
  let drawn = 0;
  for (const name of ["drawArrays", "drawElements", "drawArraysInstanced"]) {
    const draw = WebGL2RenderingContext.prototype[name];
    WebGL2RenderingContext.prototype[name] = function (...rest) {
      drawn += 1;
      return draw.apply(this, rest);
    };
  }

  const finish = (canvas) => {
    const gl = canvas.getContext("webgl2");
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
  };

  const send = (type, x, y, buttons) =>
    picture.dispatchEvent(
      new PointerEvent(type, { clientX: x, clientY: y, button: 0, buttons, bubbles: true, pointerId: 1, isPrimary: true }),
    );

  /** `step` moves something, the frame after it draws it. */
  const count = async (step, canvas, steps) => {
    await nextFrame();
    const start = performance.now();
    drawn = 0;
    for (let at = 0; at < steps; at += 1) {
      step(at);
      await nextFrame();
      finish(canvas());
    }
    return [steps, performance.now() - start, drawn];
  };

  window.measureMoves = async (kind, steps) => {
    const box = picture.getBoundingClientRect();
    const x = box.left + box.width / 2;
    const y = box.top + box.height / 2;
    if (kind === "zoom") {
      // In by half, and out again: what the eye follows.
      const turn = (at) => ({ deltaY: at % 20 < 10 ? -25 : 25, clientX: x, clientY: y, cancelable: true });
      return count((at) => picture.dispatchEvent(new WheelEvent("wheel", turn(at))), squares, steps);
    }
    picture.setPointerCapture = () => {};
    send("pointerdown", x, y, 1);
    const answer = await count((at) => send("pointermove", x + 8 * (at % 20) + 8, y + 4 * (at % 20), 1), squares, steps);
    send("pointerup", x, y, 0);
    return answer;
  };

  window.measureFlight = async (title) => {
    const choice = [...document.querySelectorAll("button, label")].find((element) => element.textContent.trim().startsWith(title));
    choice.click();
    const canvas = squares();
    while (canvas.dataset.flying === undefined) await nextFrame();
    const start = performance.now();
    let frames = 0;
    drawn = 0;
    while (canvas.dataset.flying !== undefined) {
      await nextFrame();
      finish(canvas);
      frames += 1;
    }
    const answer = [frames, performance.now() - start, drawn];
    return answer;
  };

  const VERTEX = `#version 300 es
    layout(location = 0) in vec2 corner;
    layout(location = 1) in vec3 from;
    layout(location = 2) in vec3 to;
    layout(location = 3) in vec4 tint;
    uniform vec4 camera;
    uniform float ratio;
    out vec4 color;
    void main() {
      vec3 place = mix(from, to, ratio);
      vec2 at = ((place.xy + corner * place.z) * camera.z + camera.xy) / vec2(camera.w, camera.w * 0.7);
      gl_Position = vec4(at.x * 2.0 - 1.0, 1.0 - at.y * 2.0, 0, 1);
      color = tint;
    }`;
  const FRAGMENT = `#version 300 es
    precision highp float;
    in vec4 color;
    out vec4 result;
    void main() { result = color; }`;

  /** As most chart libraries draw marks: a unit square, and its place, size and color as attributes of each instance. */
  const makePeer = (units) => {
    const canvas = document.createElement("canvas");
    canvas.width = squares().width;
    canvas.height = squares().height;
    canvas.style.cssText = "position:absolute;inset:0;pointer-events:none";
    picture.append(canvas);
    const gl = canvas.getContext("webgl2", { antialias: false, depth: false });
    const program = gl.createProgram();
    for (const [kind, text] of [[gl.VERTEX_SHADER, VERTEX], [gl.FRAGMENT_SHADER, FRAGMENT]]) {
      const shader = gl.createShader(kind);
      gl.shaderSource(shader, text);
      gl.compileShader(shader);
      gl.attachShader(program, shader);
    }
    gl.linkProgram(program);
    gl.useProgram(program);
    const columns = Math.ceil(Math.sqrt(units * 1.43));
    const fill = (slot, width, values) => {
      gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
      gl.bufferData(gl.ARRAY_BUFFER, values, gl.STATIC_DRAW);
      gl.enableVertexAttribArray(slot);
      gl.vertexAttribPointer(slot, width, gl.FLOAT, false, 0, 0);
      if (slot > 0) gl.vertexAttribDivisor(slot, 1);
    };
    const places = (order) =>
      Float32Array.from({ length: units * 3 }, (_, at) => {
        const unit = order(Math.floor(at / 3));
        return [(unit % columns) * 1.2, Math.floor(unit / columns) * 1.2, 1][at % 3];
      });
    fill(0, 2, Float32Array.of(0, 0, 1, 0, 0, 1, 1, 1));
    fill(1, 3, places((unit) => unit));
    fill(2, 3, places((unit) => (unit * 7919) % units));
    fill(3, 4, Float32Array.from({ length: units * 4 }, (_, at) => (at % 4 === 3 ? 1 : (at % 17) / 17)));
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const camera = gl.getUniformLocation(program, "camera");
    const ratio = gl.getUniformLocation(program, "ratio");
    const scale = canvas.width / (columns * 1.2);
    return {
      canvas,
      draw(dx, zoom, flown) {
        gl.viewport(0, 0, canvas.width, canvas.height);
        gl.clear(gl.COLOR_BUFFER_BIT);
        gl.uniform4f(camera, dx, dx / 2, scale * zoom, canvas.width);
        gl.uniform1f(ratio, flown);
        gl.drawArraysInstanced(gl.TRIANGLE_STRIP, 0, 4, units);
      },
    };
  };

  window.measurePeer = async (units, kind, steps) => {
    const peer = makePeer(units);
    const step = (at) => {
      // Drawn in the frame, as ours is.
      requestAnimationFrame(() =>
        peer.draw(kind === "pan" ? 8 * (at % 20) : 0, kind === "zoom" ? 1 + (at % 20) / 40 : 1, kind === "transition" ? at / 20 : 1),
      );
    };
    const answer = await count(step, () => peer.canvas, steps);
    peer.canvas.getContext("webgl2").getExtension("WEBGL_lose_context")?.loseContext();
    peer.canvas.remove();
    return answer;
  };
})();
