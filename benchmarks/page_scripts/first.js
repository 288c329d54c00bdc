// Runs before the page's own scripts. Notes when units were first drawn, and that drawing was done: milliseconds since
// navigation.

window.firstPictureMs = 0;
const draw = WebGL2RenderingContext.prototype.drawArrays;
WebGL2RenderingContext.prototype.drawArrays = function (mode, first, count) {
  draw.call(this, mode, first, count);
  if (window.firstPictureMs > 0 || count === 0) return;
  this.readPixels(0, 0, 1, 1, this.RGBA, this.UNSIGNED_BYTE, new Uint8Array(4));
  window.firstPictureMs = performance.now();
};
