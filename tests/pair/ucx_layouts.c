/* The layouts and values of src/bin/tagmatch/pair/ucx/ffi.rs, compared with the installed headers of UCX. It is compiled,
 * and not run. */
#include <stddef.h>
#include <ucp/api/ucp.h>

#define SIZE(type, size) _Static_assert(sizeof(type) == (size), "the size of " #type)
#define PLACE(type, field, place) _Static_assert(offsetof(type, field) == (place), "the place of " #type "." #field)
#define VALUE(name, value) _Static_assert((name) == (value), "the value of " #name)

SIZE(ucs_status_t, 1);
PLACE(ucp_params_t, field_mask, 0);
PLACE(ucp_params_t, features, 8);
PLACE(ucp_params_t, request_size, 16);
PLACE(ucp_params_t, request_init, 24);
PLACE(ucp_params_t, tag_sender_mask, 40);
PLACE(ucp_params_t, mt_workers_shared, 48);
PLACE(ucp_params_t, estimated_num_eps, 56);
PLACE(ucp_params_t, name, 72);
PLACE(ucp_worker_params_t, thread_mode, 8);
PLACE(ucp_worker_params_t, cpu_mask, 16);
PLACE(ucp_worker_params_t, events, 144);
PLACE(ucp_worker_params_t, user_data, 152);
PLACE(ucp_worker_params_t, event_fd, 160);
PLACE(ucp_worker_params_t, flags, 168);
PLACE(ucp_worker_params_t, client_id, 192);
PLACE(ucp_ep_params_t, address, 8);
PLACE(ucp_ep_params_t, err_mode, 16);
PLACE(ucp_ep_params_t, err_handler, 24);
PLACE(ucp_ep_params_t, user_data, 40);
PLACE(ucp_ep_params_t, flags, 48);
PLACE(ucp_ep_params_t, sockaddr, 56);
PLACE(ucp_ep_params_t, conn_request, 72);
PLACE(ucp_ep_params_t, local_sockaddr, 88);
SIZE(ucp_request_param_t, 72);
PLACE(ucp_request_param_t, op_attr_mask, 0);
PLACE(ucp_request_param_t, flags, 4);
PLACE(ucp_request_param_t, request, 8);
PLACE(ucp_request_param_t, cb, 16);
PLACE(ucp_request_param_t, datatype, 24);
PLACE(ucp_request_param_t, user_data, 32);
PLACE(ucp_request_param_t, reply_buffer, 40);
PLACE(ucp_request_param_t, memory_type, 48);
PLACE(ucp_request_param_t, recv_info, 56);
PLACE(ucp_request_param_t, memh, 64);
SIZE(ucp_tag_recv_info_t, 16);
PLACE(ucp_tag_recv_info_t, sender_tag, 0);
PLACE(ucp_tag_recv_info_t, length, 8);
VALUE(UCP_PARAM_FIELD_FEATURES, 1);
VALUE(UCP_FEATURE_TAG, 1);
VALUE(UCP_WORKER_PARAM_FIELD_THREAD_MODE, 1);
VALUE(UCS_THREAD_MODE_SINGLE, 0);
VALUE(UCP_EP_PARAM_FIELD_REMOTE_ADDRESS, 1);
VALUE(UCP_OP_ATTR_FIELD_CALLBACK, 1 << 1);
VALUE(UCP_OP_ATTR_FIELD_USER_DATA, 1 << 2);
VALUE(UCP_OP_ATTR_FIELD_DATATYPE, 1 << 3);
VALUE(UCP_OP_ATTR_FIELD_FLAGS, 1 << 4);
VALUE(UCP_OP_ATTR_FIELD_MEMORY_TYPE, 1 << 6);
VALUE(UCP_OP_ATTR_FLAG_NO_IMM_CMPL, 1 << 16);
VALUE(ucp_dt_make_contig(1), 1 << 3);
VALUE(UCP_EP_CLOSE_FLAG_FORCE, 1);
VALUE(UCS_ERR_CANCELED, -16);
VALUE(UCS_ERR_LAST, -100);

/* And the functions: what is assigned must have the type that is declared there. */
int main(void) {
    ucs_status_ptr_t (*send)(ucp_ep_h, const void *, size_t, ucp_tag_t, const ucp_request_param_t *) = ucp_tag_send_nbx;
    ucs_status_ptr_t (*receive)(ucp_worker_h, void *, size_t, ucp_tag_t, ucp_tag_t, const ucp_request_param_t *) =
        ucp_tag_recv_nbx;
    ucp_send_nbx_callback_t sent = (void (*)(void *, ucs_status_t, void *))0;
    ucp_tag_recv_nbx_callback_t received = (void (*)(void *, ucs_status_t, const ucp_tag_recv_info_t *, void *))0;
    return !send + !receive + !sent + !received;
}
