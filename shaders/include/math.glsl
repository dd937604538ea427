// The elementwise functions of the language on a GPU. Vulkan promises little of its own exp, sin and pow, so these are
// built from additions and multiplications; the errors are those of runtime/device/math.h.
#define math_inf uintBitsToFloat(0x7F800000u)

bool math_is_nan(float x) { return (floatBitsToUint(x) & 0x7FFFFFFFu) > 0x7F800000u; }

// 2^n · y for |n| <= 254, without the range that one factor has.
float math_scale(float y, int n) {
  const int first = n / 2;
  return y * uintBitsToFloat(uint(first + 127) << 23) * uintBitsToFloat(uint(n - first + 127) << 23);
}

float math_exp(float x) {
  const float c = clamp(x, -104.0, 89.0);
  precise float n = roundEven(c * 1.44269504);
  precise float r = (c - n * 0.693359375) + n * 2.12194440e-4;
  float p = 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  const float y = math_scale(p, int(n));
  if (math_is_nan(x)) return x;
  return x > 88.7228394 ? math_inf : (x < -87.3365402 ? 0.0 : y);
}

float math_exp2(float x) {
  const float c = clamp(x, -152.0, 130.0);
  const float n = roundEven(c);
  const float y = math_scale(math_exp((c - n) * 0.693147181), int(n));
  if (math_is_nan(x)) return x;
  return x >= 128.0 ? math_inf : (x < -149.0 ? 0.0 : y);
}

// log x = e ln 2 + log m, m in [sqrt(1/2), sqrt(2)): 2 atanh((m - 1) / (m + 1)).
float math_log_of(float m, int e) {
  const float f = m - 1.0;
  const float s = f / (2.0 + f), z = s * s;
  float p = 2.0 / 13.0;
  p = p * z + 2.0 / 11.0;
  p = p * z + 2.0 / 9.0;
  p = p * z + 2.0 / 7.0;
  p = p * z + 2.0 / 5.0;
  p = p * z + 2.0 / 3.0;
  // 2s = f - s·f
  precise float tail = s * (z * p) + (float(e) * -2.12194440e-4 - s * f);
  precise float high = float(e) * 0.693359375;
  return high + (f + tail);
}
float math_log(float x) {
  if (math_is_nan(x) || x < 0.0) return uintBitsToFloat(0x7FC00000u);
  if (x == 0.0) return -math_inf;
  if (x == math_inf) return x;
  int e = 0;
  float y = x;
  if (y < 1.17549435e-38) { y *= 16777216.0; e = -24; }
  uint bits = floatBitsToUint(y);
  e += int(bits >> 23) - 127;
  bits = (bits & 0x007FFFFFu) | 0x3F800000u;
  float m = uintBitsToFloat(bits);
  if (m > 1.41421356) { m *= 0.5; e += 1; }
  return math_log_of(m, e);
}
float math_log1p(float x) {
  if (abs(x) < 1e-4) return x - x * x * 0.5 + x * x * x * (1.0 / 3.0);
  if (x > 1e7 || x <= -0.5) return math_log(1.0 + x);
  // The low bits that 1 + x loses, to first order.
  precise float u = 1.0 + x;
  precise float lost = x - (u - 1.0);
  return math_log(u) + lost / u;
}
float math_expm1(float x) {
  if (abs(x) > 0.35) return math_exp(x) - 1.0;
  float p = 1.0 / 40320.0;
  p = p * x + 1.0 / 5040.0;
  p = p * x + 1.0 / 720.0;
  p = p * x + 1.0 / 120.0;
  p = p * x + 1.0 / 24.0;
  p = p * x + 1.0 / 6.0;
  p = p * x + 0.5;
  return x + x * x * p;
}

float math_sigmoid(float x) { return 1.0 / (1.0 + math_exp(-x)); }
float math_silu(float x) { return x / (1.0 + math_exp(-x)); }
float math_quick_gelu(float x) { return x / (1.0 + math_exp(-1.702 * x)); }
float math_tanh(float x) {
  const float a = abs(x);
  const float e = math_exp(-2.0 * a);
  const float far_off = (1.0 - e) / (1.0 + e);
  const float s = x * x;
  float p = -1382.0 / 155925.0;
  p = p * s + 62.0 / 2835.0;
  p = p * s - 17.0 / 315.0;
  p = p * s + 2.0 / 15.0;
  p = p * s - 1.0 / 3.0;
  return a < 0.3 ? x + x * (s * p) : (x < 0.0 ? -far_off : far_off);
}
float math_gelu_tanh(float x) { return 0.5 * x * (1.0 + math_tanh(0.797884561 * (x + 0.044715 * x * x * x))); }

// Below 1 the Taylor series of erf, above it the continued fraction of erfc in 12 steps from the far end.
float math_erf(float x) {
  if (math_is_nan(x)) return x;
  const float a = abs(x);
  float y;
  if (a < 1.5) {
    const float s = a * a;
    // x · sum (-s)^n / (n! (2n + 1)), from the last term that counts
    float term = 0.0;
    for (int n = 20; n > 0; --n) {
      const float next = n == 20 ? 1.0 / 41.0 : term;
      term = 1.0 / float(2 * n - 1) - (s / float(n)) * next;
    }
    y = 1.12837917 * a * term;
  } else {
    float f = a;
    for (int n = 40; n > 0; --n) f = a + 0.5 * float(n) / f;
    y = a > 4.5 ? 1.0 : 1.0 - math_exp(-a * a) * 0.564189584 / f;
  }
  return x < 0.0 ? -y : y;
}
float math_gelu(float x) { return 0.5 * x * (1.0 + math_erf(x * 0.707106781)); }
float math_relu(float x) { return x > 0.0 ? x : (math_is_nan(x) ? x : 0.0); }
float math_softplus(float x) { return x > 20.0 ? x : math_log1p(math_exp(x)); }
float math_sqrt(float x) { return sqrt(x); }
float math_rsqrt(float x) { return 1.0 / sqrt(x); }
float math_abs(float x) { return abs(x); }
float math_floor(float x) { return floor(x); }
float math_ceil(float x) { return ceil(x); }

// x = q · pi/2 + r, |r| <= pi/4. Of large arguments with the bits of 2/pi that count, in whole numbers.
const uint math_two_over_pi[8] = uint[8](0u, 0u, 0xA2F9836Eu, 0x4E441529u, 0xFC2757D1u, 0xF534DDC0u, 0xDB629599u, 0x3C439041u);
float math_reduce_angle(float x, out int q) {
  const float a = abs(x);
  if (a < 1000.0) {
    const float n = roundEven(a * 0.636619772);
    precise float r = a - n * 1.5703125;         // pi/2 in four parts; n times the first two is exact
    r = r - n * 4.83751297e-4;
    r = r - n * 7.54953362e-8;
    r = r - n * 2.56334406e-12;
    q = x < 0.0 ? -int(n) : int(n);
    return x < 0.0 ? -r : r;
  }
  // a = m · 2^e, m of 24 bits. Words of 2/pi · 2^e: whole turns' bits above the point in p0 (modulo 2^32), then fractions.
  const uint bits = floatBitsToUint(a);
  const int e = int(bits >> 23) - 150;
  const uint m = (bits & 0x007FFFFFu) | 0x00800000u;
  const uint word = uint(e + 32) >> 5, shift = uint(e + 32) & 31u;
  uint p[3];
  for (uint i = 0u; i < 3u; ++i) {
    const uint lo = math_two_over_pi[word + i], hi = math_two_over_pi[word + i + 1u];
    p[i] = shift == 0u ? lo : (lo << shift) | (hi >> (32u - shift));
  }
  uint h1, l1, h2, rest, carry;
  umulExtended(m, p[1], h1, l1);
  umulExtended(m, p[2], h2, rest);
  uint fraction = uaddCarry(l1, h2, carry);
  uint whole = m * p[0] + h1 + carry;
  const bool above = (fraction & 0x80000000u) != 0u;       // to the nearest quarter turn
  if (above) { fraction = ~fraction; rest = ~rest; whole += 1u; }
  float r = (float(fraction) * 2.3283064365386963e-10 + float(rest) * 5.421010862427522e-20) * 1.57079633;
  if (above != (x < 0.0)) r = -r;
  q = int(whole & 3u);
  if (x < 0.0) q = -q;
  return r;
}
float math_sin_of(float r) {
  const float s = r * r;
  float p = 2.75573192e-6;
  p = p * s - 1.98412698e-4;
  p = p * s + 8.33333333e-3;
  p = p * s - 1.66666667e-1;
  return r + r * (s * p);
}
float math_cos_of(float r) {
  const float s = r * r;
  float p = -2.75573192e-7;
  p = p * s + 2.48015873e-5;
  p = p * s - 1.38888889e-3;
  p = p * s + 4.16666667e-2;
  return 1.0 - 0.5 * s + s * s * p;
}
float math_turn(float x, int quarter) {
  if ((floatBitsToUint(x) & 0x7F800000u) == 0x7F800000u) return uintBitsToFloat(0x7FC00000u);
  int q;
  const float r = math_reduce_angle(x, q);
  q += quarter;
  const float y = (q & 1) == 0 ? math_sin_of(r) : math_cos_of(r);
  return (q & 2) == 0 ? y : -y;
}
float math_sin(float x) { return math_turn(x, 0); }
float math_cos(float x) { return math_turn(x, 1); }

// As C's pow.
float math_pow(float x, float y) {
  if (y == 0.0 || x == 1.0) return 1.0;
  if (math_is_nan(x) || math_is_nan(y)) return uintBitsToFloat(0x7FC00000u);
  const bool whole = floor(y) == y;
  const bool odd = whole && abs(y) < 16777216.0 && (int(y) & 1) != 0;
  const float a = abs(x);
  float r;
  if (whole && abs(y) <= 64.0) {                 // by squares: x · x is exact where it can be
    r = 1.0;
    float b = a;
    for (uint n = uint(abs(y)); n > 0u; n >>= 1) {
      if ((n & 1u) != 0u) r *= b;
      b *= b;
    }
    if (y < 0.0) r = 1.0 / r;
  } else if (a == 0.0) {
    r = y > 0.0 ? 0.0 : math_inf;
  } else if (a == math_inf) {
    r = y > 0.0 ? math_inf : 0.0;
  } else if (a == 1.0) {
    r = 1.0;
  } else {
    // y log a in two parts, so that the product's rounding does not show.
    uint bits = floatBitsToUint(a);
    int e = int(bits >> 23) - 127;
    float m = uintBitsToFloat((bits & 0x007FFFFFu) | 0x3F800000u);
    if (m > 1.41421356) { m *= 0.5; e += 1; }
    const float l = math_log_of(m, 0);           // log a = e ln 2 + l
    precise float t = y * float(e);
    const float n = roundEven(clamp(t + y * l * 1.44269504, -300.0, 300.0));
    precise float rest = (t - n) * 0.693359375;
    rest = rest + (t - n) * -2.12194440e-4 + y * l;
    r = n >= 250.0 ? math_inf : (n <= -250.0 ? 0.0 : math_scale(math_exp(rest), int(n)));
  }
  if (x < 0.0) {
    if (!whole) return a == math_inf ? r : uintBitsToFloat(0x7FC00000u);
    if (odd) r = -r;
  }
  return r;
}
float math_min(float a, float b) { return math_is_nan(a) ? a : (b < a || math_is_nan(b) ? b : a); }
float math_max(float a, float b) { return math_is_nan(a) ? a : (b > a || math_is_nan(b) ? b : a); }
int math_min(int a, int b) { return b < a ? b : a; }
int math_max(int a, int b) { return b > a ? b : a; }
int math_abs(int x) { return x < 0 ? -x : x; }
float math_clamp(float x, float lo, float hi) { return math_min(math_max(x, lo), hi); }
// What is left of the magnitudes a by long division, as whole numbers: exact for every quotient, which a - b trunc(a / b) is not, and
// needs no fma of one rounding, which Vulkan does not promise.
float math_rest(float a, float b) {
  uint x = floatBitsToUint(a) & 0x7FFFFFFFu, y = floatBitsToUint(b) & 0x7FFFFFFFu;
  if (y == 0u || y > 0x7F800000u || x >= 0x7F800000u) return uintBitsToFloat(0x7FC00000u);
  if (x < y) return uintBitsToFloat(x);
  int ex = int(x >> 23), ey = int(y >> 23);
  // Subnormal numbers have no leading one of their own.
  if (ex == 0) { ex = findMSB(x) - 22; x <<= uint(1 - ex); } else { x = (x & 0x007FFFFFu) | 0x00800000u; }
  if (ey == 0) { ey = findMSB(y) - 22; y <<= uint(1 - ey); } else { y = (y & 0x007FFFFFu) | 0x00800000u; }
  for (; ex > ey; --ex) {
    if (x >= y) x -= y;
    x <<= 1;
  }
  if (x >= y) x -= y;
  if (x == 0u) return 0.0;
  const int up = 23 - findMSB(x);
  x <<= uint(up);
  ex -= up;
  return uintBitsToFloat(ex > 0 ? (x & 0x007FFFFFu) | (uint(ex) << 23) : x >> uint(1 - ex));
}
// The remainder with the sign of b.
float math_mod(float a, float b) {
  const float rest = math_rest(a, b), r = a < 0.0 ? -rest : rest;
  return r != 0.0 && (r < 0.0) != (b < 0.0) ? r + b : r;
}
float math_where(float c, float a, float b) { return c != 0.0 ? a : b; }
int math_where(float c, int a, int b) { return c != 0.0 ? a : b; }
