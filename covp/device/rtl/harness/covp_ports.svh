// The ports of the module covp_core, which every wrapper around a core declares: what harness.cpp drives
// and reads. COVP_OBI: the bus has a grant, and an answer later; else both come with one acknowledge.
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [31:0] boot_i,

    output logic        fetch_req_o,
    output logic [31:0] fetch_addr_o,
    input  logic [31:0] fetch_rdata_i,

    output logic        data_req_o,
    output logic        data_we_o,
    output logic [ 3:0] data_be_o,
    output logic [31:0] data_addr_o,
    output logic [31:0] data_wdata_o,
    input  logic [31:0] data_rdata_i,
    output logic [31:0] data_pc_o,
`ifdef COVP_OBI
    input  logic        fetch_gnt_i,
    input  logic        fetch_rvalid_i,
    input  logic        data_gnt_i,
    input  logic        data_rvalid_i,
`else
    input  logic        fetch_ack_i,
    input  logic        data_ack_i,
`endif

    input  logic        irq_i,
    output logic        sleep_o,

    output logic        retire_o,
    output logic [31:0] retire_pc_o,
    output logic        trap_o,
    output logic [31:0] trap_cause_o,
    output logic [31:0] trap_pc_o,
`ifdef COVP_CFU
    output logic        cfu_valid_o,
    output logic [ 9:0] cfu_id_o,
    output logic [31:0] cfu_a_o,
    output logic [31:0] cfu_b_o,
    input  logic        cfu_ready_i,
    input  logic        cfu_answers_i,
    input  logic [31:0] cfu_answer_i,
`endif
    output logic [31:0] sp_o,
    output logic [31:0] ra_o
