/* rest_page: the page for people (page.html), whole in one answer; what it shows it asks of the
 * other paths. */

#include "control/rest/rest_internal.h"

#include <string.h>

/* Made of page.html by the build. */
extern const char rest_page_html[];

void rest_get_page(struct rest_call *call)
{
	call->response->body = strdup(rest_page_html);
	if (call->response->body == NULL) {
		rest_refuse(call, 500, "out of memory");
		return;
	}
	call->response->status = 200;
	call->response->content_type = "text/html; charset=utf-8";
}
