#include "dataplane/operator/zipf.h"

#include "dataplane/base/check.h"

#include <math.h>

/* The area under x^-exponent from 1 to x. */
static double area(const struct zipf *z, double x)
{
	double power = 1 - z->exponent;

	return power == 0 ? log(x) : expm1(power * log(x)) / power;
}

static double area_inverse(const struct zipf *z, double y)
{
	double power = 1 - z->exponent;

	if (power == 0)
		return exp(y);
	/* Rounding may reach the end of an area that has one. */
	double t = y * power > -1 ? y * power : -1;
	return exp(log1p(t) / power);
}

void zipf_init(struct zipf *z, uint64_t count, double exponent)
{
	CHECK(count >= 1);
	CHECK(exponent > 0);
	*z = (struct zipf){.exponent = exponent, .count = (double)count};
	z->area_from = area(z, 1.5) - 1;
	z->area_to = area(z, z->count + 0.5);
	z->shortcut = 2 - area_inverse(z, area(z, 2.5) - pow(2, -exponent));
}

uint64_t zipf_try(const struct zipf *z, double unit)
{
	double u = z->area_to + unit * (z->area_from - z->area_to);
	double x = area_inverse(z, u);
	double rank = floor(x + 0.5);

	if (!(rank >= 1))
		rank = 1;
	if (rank > z->count)
		rank = z->count;
	if (rank - x <= z->shortcut || u >= area(z, rank + 0.5) - pow(rank, -z->exponent))
		return (uint64_t)rank;
	return 0;
}
