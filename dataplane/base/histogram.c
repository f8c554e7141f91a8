#include "dataplane/base/histogram.h"

#include "dataplane/base/check.h"

#include <stdlib.h>
#include <string.h>

void histogram_add(struct histogram *h, int64_t sample)
{
	if (h->count == 0 || sample < h->min)
		h->min = sample;
	if (h->count == 0 || sample > h->max)
		h->max = sample;
	h->samples[h->count % HISTOGRAM_COUNT_MAX] = sample;
	h->sum += (double)sample;
	h->count++;
}

static int compare(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

int64_t histogram_quantile(const struct histogram *h, double q)
{
	size_t count = h->count < HISTOGRAM_COUNT_MAX ? (size_t)h->count : HISTOGRAM_COUNT_MAX;
	int64_t sorted[HISTOGRAM_COUNT_MAX];

	CHECK(q >= 0 && q <= 1);
	if (count == 0)
		return 0;
	memcpy(sorted, h->samples, count * sizeof(sorted[0]));
	qsort(sorted, count, sizeof(sorted[0]), compare);
	size_t rank = (size_t)(q * (double)count);
	return sorted[rank < count ? rank : count - 1];
}

double histogram_mean(const struct histogram *h)
{
	return h->count == 0 ? 0 : h->sum / (double)h->count;
}
