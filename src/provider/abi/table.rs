//! Every layout and constant of libfabric that is mirrored here, once.
//!
//! The crate makes compile-time assertions about its own structures of it, `build.rs` a C program that compares it
//! with the installed headers. Each includes this file and brings its own `fabric_layouts!`, `fabric_constants!` and
//! `later_constants!`.
//!
//! Of a structure stand here its size in API 1.17 and in API 2.6, and the places of its fields in 2.6. Structures grow
//! at their ends alone: what lies behind the first size is looked at only for a caller of an API that has it. LP64.

fabric_layouts! {
    fid: 24, 24 => { fclass: 0, context: 8, ops: 16 }
    fi_ops: 56, 56 => { size: 0, close: 8, bind: 16, control: 24, ops_open: 32, tostr: 40, ops_set: 48 }
    fi_tx_attr: 80, 80 => {
        caps: 0, mode: 8, op_flags: 16, msg_order: 24, comp_order: 32, inject_size: 40, size: 48,
        iov_limit: 56, rma_iov_limit: 64, tclass: 72,
    }
    fi_rx_attr: 64, 64 => {
        caps: 0, mode: 8, op_flags: 16, msg_order: 24, comp_order: 32, total_buffered_recv: 40, size: 48,
        iov_limit: 56,
    }
    fi_ep_attr: 96, 104 => {
        r#type: 0, protocol: 4, protocol_version: 8, max_msg_size: 16, msg_prefix_size: 24,
        max_order_raw_size: 32, max_order_war_size: 40, max_order_waw_size: 48, mem_tag_format: 56,
        tx_ctx_cnt: 64, rx_ctx_cnt: 72, auth_key_size: 80, auth_key: 88, xpu_ctx: 96,
    }
    fi_domain_attr: 192, 232 => {
        domain: 0, name: 8, threading: 16, control_progress: 20, data_progress: 24, resource_mgmt: 28,
        av_type: 32, mr_mode: 36, mr_key_size: 40, cq_data_size: 48, cq_cnt: 56, ep_cnt: 64, tx_ctx_cnt: 72,
        rx_ctx_cnt: 80, max_ep_tx_ctx: 88, max_ep_rx_ctx: 96, max_ep_stx_ctx: 104, max_ep_srx_ctx: 112,
        cntr_cnt: 120, mr_iov_limit: 128, caps: 136, mode: 144, auth_key: 152, auth_key_size: 160,
        max_err_data: 168, mr_cnt: 176, tclass: 184, max_ep_auth_key: 192, max_group_id: 200,
        max_cntr_value: 208, max_err_cntr_value: 216, max_xpu_ctx_cnt: 224,
    }
    fi_fabric_attr: 32, 32 => { fabric: 0, name: 8, prov_name: 16, prov_version: 24, api_version: 28 }
    fi_info: 120, 120 => {
        next: 0, caps: 8, mode: 16, addr_format: 24, src_addrlen: 32, dest_addrlen: 40, src_addr: 48,
        dest_addr: 56, handle: 64, tx_attr: 72, rx_attr: 80, ep_attr: 88, domain_attr: 96, fabric_attr: 104,
        nic: 112,
    }
    fi_provider: 72, 72 => {
        version: 0, fi_version: 4, context: 8, name: 40, getinfo: 48, fabric: 56, cleanup: 64,
    }
    fi_ops_fabric: 56, 56 => {
        size: 0, domain: 8, passive_ep: 16, eq_open: 24, wait_open: 32, trywait: 40, domain2: 48,
    }
    fid_fabric: 40, 40 => { fid: 0, ops: 24, api_version: 32 }
    fi_ops_domain: 96, 104 => {
        size: 0, av_open: 8, cq_open: 16, endpoint: 24, scalable_ep: 32, cntr_open: 40, poll_open: 48,
        stx_ctx: 56, srx_ctx: 64, query_atomic: 72, query_collective: 80, endpoint2: 88, xpu_ctx: 96,
    }
    fi_ops_mr: 32, 32 => { size: 0, reg: 8, regv: 16, regattr: 24 }
    fid_domain: 40, 40 => { fid: 0, ops: 24, mr: 32 }
    fid_mr: 40, 40 => { fid: 0, mem_desc: 24, key: 32 }
    fi_mr_attr: 80, 112 => {
        mr_iov: 0, iov_count: 8, access: 16, offset: 24, requested_key: 32, context: 40, auth_key_size: 48,
        auth_key: 56, iface: 64, device: 72, hmem_data: 80, page_size: 88, base_mr: 96, sub_mr_cnt: 104,
    }
    fi_av_attr: 48, 48 => {
        r#type: 0, rx_ctx_bits: 4, count: 8, ep_per_node: 16, name: 24, map_addr: 32, flags: 40,
    }
    fi_ops_av: 64, 96 => {
        size: 0, insert: 8, insertsvc: 16, insertsym: 24, remove: 32, lookup: 40, straddr: 48, av_set: 56,
        insert_auth_key: 64, lookup_auth_key: 72, set_user_id: 80, lookup2: 88,
    }
    fid_av: 32, 32 => { fid: 0, ops: 24 }
    fi_cq_attr: 40, 48 => {
        size: 0, flags: 8, format: 16, wait_obj: 20, signaling_vector: 24, wait_cond: 28, wait_set: 32,
        xpu_ctx: 40,
    }
    fi_cq_tagged_entry: 48, 48 => { op_context: 0, flags: 8, len: 16, buf: 24, data: 32, tag: 40 }
    fi_cq_err_entry: 80, 88 => {
        op_context: 0, flags: 8, len: 16, buf: 24, data: 32, tag: 40, olen: 48, err: 56, prov_errno: 60,
        err_data: 64, err_data_size: 72, src_addr: 80,
    }
    fi_ops_cq: 64, 72 => {
        size: 0, read: 8, readfrom: 16, readerr: 24, sread: 32, sreadfrom: 40, signal: 48, strerror: 56,
        export_xpu: 64,
    }
    fid_cq: 32, 32 => { fid: 0, ops: 24 }
    fi_cntr_attr: 24, 32 => { events: 0, wait_obj: 4, wait_set: 8, flags: 16, xpu_ctx: 24 }
    fi_ops_cntr: 64, 72 => {
        size: 0, read: 8, readerr: 16, add: 24, set: 32, wait: 40, adderr: 48, seterr: 56, export_xpu: 64,
    }
    fid_cntr: 32, 32 => { fid: 0, ops: 24 }
    fi_eq_attr: 32, 32 => { size: 0, flags: 8, wait_obj: 16, signaling_vector: 20, wait_set: 24 }
    fi_eq_err_entry: 48, 48 => {
        fid: 0, context: 8, data: 16, err: 24, prov_errno: 28, err_data: 32, err_data_size: 40,
    }
    fi_ops_eq: 48, 48 => { size: 0, read: 8, readerr: 16, write: 24, sread: 32, strerror: 40 }
    fid_eq: 32, 32 => { fid: 0, ops: 24 }
    fi_ops_poll: 32, 32 => { size: 0, poll: 8, poll_add: 16, poll_del: 24 }
    fid_poll: 32, 32 => { fid: 0, ops: 24 }
    fi_poll_attr: 8, 8 => { flags: 0 }
    fi_wait_pollfd: 24, 24 => { change_index: 0, nfds: 8, fd: 16 }
    fi_msg: 48, 48 => { msg_iov: 0, desc: 8, iov_count: 16, addr: 24, context: 32, data: 40 }
    fi_msg_tagged: 64, 64 => {
        msg_iov: 0, desc: 8, iov_count: 16, addr: 24, tag: 32, ignore: 40, context: 48, data: 56,
    }
    fi_ops_ep: 64, 72 => {
        size: 0, cancel: 8, getopt: 16, setopt: 24, tx_ctx: 32, rx_ctx: 40, rx_size_left: 48, tx_size_left: 56,
        export_xpu: 64,
    }
    fi_ops_cm: 80, 80 => {
        size: 0, setname: 8, getname: 16, getpeer: 24, connect: 32, listen: 40, accept: 48, reject: 56,
        shutdown: 64, join: 72,
    }
    fi_ops_msg: 80, 80 => {
        size: 0, recv: 8, recvv: 16, recvmsg: 24, send: 32, sendv: 40, sendmsg: 48, inject: 56, senddata: 64,
        injectdata: 72,
    }
    fi_ops_tagged: 80, 80 => {
        size: 0, recv: 8, recvv: 16, recvmsg: 24, send: 32, sendv: 40, sendmsg: 48, inject: 56, senddata: 64,
        injectdata: 72,
    }
    fi_rma_iov: 24, 24 => { addr: 0, len: 8, key: 16 }
    fi_msg_rma: 64, 64 => {
        msg_iov: 0, desc: 8, iov_count: 16, addr: 24, rma_iov: 32, rma_iov_count: 40, context: 48, data: 56,
    }
    fi_ops_rma: 80, 80 => {
        size: 0, read: 8, readv: 16, readmsg: 24, write: 32, writev: 40, writemsg: 48, inject: 56,
        writedata: 64, injectdata: 72,
    }
    fi_ioc: 16, 16 => { addr: 0, count: 8 }
    fi_rma_ioc: 24, 24 => { addr: 0, count: 8, key: 16 }
    fi_msg_atomic: 72, 72 => {
        msg_iov: 0, desc: 8, iov_count: 16, addr: 24, rma_iov: 32, rma_iov_count: 40, datatype: 48, op: 52,
        context: 56, data: 64,
    }
    fi_atomic_attr: 16, 16 => { count: 0, size: 8 }
    fi_ops_atomic: 112, 112 => {
        size: 0, write: 8, writev: 16, writemsg: 24, inject: 32, readwrite: 40, readwritev: 48,
        readwritemsg: 56, compwrite: 64, compwritev: 72, compwritemsg: 80, writevalid: 88, readwritevalid: 96,
        compwritevalid: 104,
    }
    fi_ops_collective: 96, 96 => {
        size: 0, barrier: 8, broadcast: 16, alltoall: 24, allreduce: 32, allgather: 40, reduce_scatter: 48,
        reduce: 56, scatter: 64, gather: 72, msg: 80, barrier2: 88,
    }
    fi_eq_cm_entry: 16, 16 => { fid: 0, info: 8 }
    fid_pep: 40, 40 => { fid: 0, ops: 24, cm: 32 }
    fid_ep: 80, 80 => { fid: 0, ops: 24, cm: 32, msg: 40, rma: 48, tagged: 56, atomic: 64, collective: 72 }
}

fabric_constants! {
    FI_MSG = 2; FI_RMA = 4; FI_TAGGED = 8; FI_ATOMIC = 16; FI_MULTICAST = 32; FI_COLLECTIVE = 64;
    FI_READ = 256; FI_WRITE = 512; FI_RECV = 1024; FI_SEND = 2048; FI_REMOTE_READ = 4096;
    FI_REMOTE_WRITE = 8192; FI_MULTI_RECV = 65536; FI_REMOTE_CQ_DATA = 131072; FI_MORE = 262144;
    FI_PEEK = 524288; FI_TRIGGER = 1048576; FI_FENCE = 2097152; FI_COMPLETION = 16777216; FI_EVENT = 16777216;
    FI_INJECT = 33554432; FI_INJECT_COMPLETE = 67108864; FI_TRANSMIT_COMPLETE = 134217728;
    FI_DELIVERY_COMPLETE = 268435456; FI_COMMIT_COMPLETE = 1073741824; FI_MATCH_COMPLETE = 2147483648;
    FI_AFFINITY = 536870912; FI_HMEM = 140737488355328; FI_RMA_PMEM = 562949953421312;
    FI_SOURCE_ERR = 1125899906842624; FI_LOCAL_COMM = 2251799813685248; FI_REMOTE_COMM = 4503599627370496;
    FI_SHARED_AV = 9007199254740992; FI_NUMERICHOST = 36028797018963968; FI_RMA_EVENT = 72057594037927936;
    FI_SOURCE = 144115188075855872; FI_NAMED_RX_CTX = 288230376151711744;
    FI_DIRECTED_RECV = 576460752303423488; FI_CLAIM = 576460752303423488; FI_DISCARD = 288230376151711744;
    FI_SELECTIVE_COMPLETION = 576460752303423488; FI_SYNC_ERR = 288230376151711744; FI_PEER = 8796093022208;
    FI_FORMAT_UNSPEC = 0; FI_SOCKADDR = 1; FI_SOCKADDR_IN = 2; FI_SOCKADDR_IN6 = 3; FI_ADDR_STR = 9;
    FI_ADDR_UNSPEC = 18446744073709551615; FI_ADDR_NOTAVAIL = 18446744073709551615;
    FI_AV_UNSPEC = 0; FI_AV_MAP = 1; FI_AV_TABLE = 2; FI_MR_LOCAL = 4; FI_MR_ENDPOINT = 512; FI_MR_HMEM = 1024;
    FI_MR_ALLOCATED = 32; FI_MR_BASIC = 1; FI_MR_PROV_KEY = 64; FI_MR_VIRT_ADDR = 16;
    FI_MR_SCALABLE = 2;
    FI_PROGRESS_UNSPEC = 0; FI_PROGRESS_AUTO = 1; FI_PROGRESS_MANUAL = 2;
    FI_THREAD_UNSPEC = 0; FI_THREAD_SAFE = 1; FI_THREAD_FID = 2; FI_THREAD_DOMAIN = 3;
    FI_THREAD_COMPLETION = 4; FI_THREAD_ENDPOINT = 5;
    FI_RM_UNSPEC = 0; FI_RM_DISABLED = 1; FI_RM_ENABLED = 2;
    FI_ORDER_RAR = 1; FI_ORDER_RAW = 2; FI_ORDER_RAS = 4; FI_ORDER_WAR = 8; FI_ORDER_WAW = 16; FI_ORDER_WAS = 32;
    FI_ORDER_SAR = 64; FI_ORDER_SAW = 128; FI_ORDER_SAS = 256; FI_ORDER_RMA_RAR = 4294967296;
    FI_ORDER_RMA_RAW = 8589934592; FI_ORDER_RMA_WAW = 34359738368; FI_ORDER_ATOMIC_RAR = 68719476736;
    FI_ORDER_ATOMIC_RAW = 137438953472; FI_ORDER_ATOMIC_WAR = 274877906944; FI_ORDER_ATOMIC_WAW = 549755813888;
    FI_FETCH_ATOMIC = 288230376151711744; FI_COMPARE_ATOMIC = 576460752303423488; FI_EP_UNSPEC = 0; FI_EP_MSG = 1; FI_EP_DGRAM = 2; FI_EP_RDM = 3;
    FI_PROTO_UNSPEC = 0;
    FI_TC_UNSPEC = 0; FI_TC_BEST_EFFORT = 512; FI_CONTEXT = 576460752303423488;
    FI_MSG_PREFIX = 288230376151711744; FI_ASYNC_IOV = 144115188075855872; FI_RX_CQ_DATA = 72057594037927936;
    FI_CONTEXT2 = 4503599627370496;
    FI_CLASS_FABRIC = 1; FI_CLASS_DOMAIN = 2; FI_CLASS_EP = 3; FI_CLASS_PEP = 9; FI_CLASS_AV = 11; FI_CLASS_MR = 12;
    FI_CLASS_EQ = 13; FI_CLASS_CQ = 14; FI_CLASS_CNTR = 15; FI_CLASS_POLL = 17;
    FI_CLASS_CONNREQ = 18; FI_CONNREQ = 1; FI_CONNECTED = 2; FI_SHUTDOWN = 3; FI_BACKLOG = 7;
    FI_GETOPSFLAG = 2; FI_SETOPSFLAG = 3; FI_GETWAIT = 5; FI_ENABLE = 6; FI_GETWAITOBJ = 16;
    FI_OPT_ENDPOINT = 0; FI_OPT_MIN_MULTI_RECV = 0; FI_OPT_CM_DATA_SIZE = 1; FI_OPT_TX_SIZE = 6;
    FI_OPT_RX_SIZE = 7; FI_OPT_FI_HMEM_P2P = 8;
    FI_WAIT_NONE = 0; FI_WAIT_UNSPEC = 1; FI_WAIT_SET = 2; FI_WAIT_FD = 3; FI_WAIT_MUTEX_COND = 4;
    FI_WAIT_YIELD = 5; FI_WAIT_POLLFD = 6;
    FI_CQ_FORMAT_UNSPEC = 0; FI_CQ_FORMAT_CONTEXT = 1; FI_CQ_FORMAT_MSG = 2; FI_CQ_FORMAT_DATA = 3;
    FI_CQ_FORMAT_TAGGED = 4; FI_CQ_COND_NONE = 0;
    FI_CNTR_EVENTS_COMP = 0; FI_NOTIFY = 0; FI_HMEM_SYSTEM = 0; FI_SHARED_CONTEXT = 18446744073709551615;
    FI_EPERM = 1; FI_EIO = 5; FI_EAGAIN = 11; FI_ENOMEM = 12; FI_EBUSY = 16; FI_EINVAL = 22; FI_ENOSPC = 28;
    FI_ENOSYS = 38; FI_ENOMSG = 42; FI_ENODATA = 61; FI_EMSGSIZE = 90; FI_ENOPROTOOPT = 92; FI_EOPNOTSUPP = 95;
    FI_EADDRINUSE = 98; FI_EADDRNOTAVAIL = 99; FI_ENETUNREACH = 101; FI_ECONNRESET = 104; FI_ETIMEDOUT = 110;
    FI_ECONNREFUSED = 111; FI_EHOSTUNREACH = 113; FI_EISCONN = 106; FI_ENOTCONN = 107; FI_EALREADY = 114; FI_ECANCELED = 125; FI_EACCES = 13; FI_EFAULT = 14;
    FI_EOTHER = 256; FI_ETOOSMALL = 257; FI_EOPBADSTATE = 258; FI_EAVAIL = 259; FI_EBADFLAGS = 260;
    FI_ENOEQ = 261; FI_EDOMAIN = 262; FI_ENOCQ = 263; FI_ETRUNC = 265; FI_ENOAV = 267; FI_ECONNABORTED = 103;
    FI_ENOKEY = 266;
}

// Constants that 1.17 does not have.
later_constants! {
    FI_PROGRESS_CONTROL_UNIFIED = 3; FI_SOCKADDR_IP = 17; FI_TAGGED_DIRECTED_RECV = 35184372088832;
    FI_TAGGED_MULTI_RECV = 70368744177664; FI_EXACT_DIRECTED_RECV = 281474976710656; FI_XPU = 17592186044416;
    FI_OPT_MAX_MSG_SIZE = 12; FI_OPT_INJECT_MSG_SIZE = 16; FI_OPT_MAX_TAGGED_SIZE = 13;
    FI_OPT_INJECT_TAGGED_SIZE = 17; FI_OPT_CUDA_API_PERMITTED = 10; FI_OPT_SHARED_MEMORY_PERMITTED = 11;
    FI_CNTR_EVENTS_BYTES = 1;
}
