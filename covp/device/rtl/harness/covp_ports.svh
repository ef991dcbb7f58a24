// The ports of the module covp_core, which every wrapper around a core declares: what harness.cpp drives
// and reads. Which bus it has says `bus` of rtl.yaml; the ports of a header of one's own follow after these.
    input  logic        clk_i,
    input  logic        rst_ni,
    input  logic [31:0] boot_i,

`ifdef COVP_AXI
    output logic        fetch_arvalid_o,
    output logic [31:0] fetch_araddr_o,
    input  logic        fetch_arready_i,
    output logic        fetch_rready_o,
    input  logic        fetch_rvalid_i,
    input  logic [31:0] fetch_rdata_i,

    output logic        data_arvalid_o,
    output logic [31:0] data_araddr_o,
    output logic [ 3:0] data_rstrb_o,  // which bytes of the word the core loads; 4'hf: not known
    input  logic        data_arready_i,
    output logic        data_rready_o,
    input  logic        data_rvalid_i,
    input  logic [31:0] data_rdata_i,
    output logic        data_awvalid_o,
    output logic [31:0] data_awaddr_o,
    input  logic        data_awready_i,
    output logic        data_wvalid_o,
    output logic [31:0] data_wdata_o,
    output logic [ 3:0] data_wstrb_o,
    input  logic        data_wready_i,
    output logic        data_bready_o,
    input  logic        data_bvalid_i,
`elsif COVP_OWN_BUS
`else
    output logic        fetch_req_o,   // AHB: HTRANS[1]
    output logic [31:0] fetch_addr_o,
    input  logic [31:0] fetch_rdata_i,

    output logic        data_req_o,    // AHB: HTRANS[1]
    output logic        data_we_o,
`ifdef COVP_AHB
    output logic [ 2:0] data_size_o,   // HSIZE
`else
    output logic [ 3:0] data_be_o,
`endif
    output logic [31:0] data_addr_o,
    output logic [31:0] data_wdata_o,
    input  logic [31:0] data_rdata_i,
`ifdef COVP_OBI
    input  logic        fetch_gnt_i,
    input  logic        fetch_rvalid_i,
    input  logic        data_gnt_i,
    input  logic        data_rvalid_i,
`elsif COVP_AHB
    input  logic        fetch_ready_i, // HREADY
    input  logic        data_ready_i,
`else
    input  logic        fetch_ack_i,
    input  logic        data_ack_i,
`endif
`endif
    output logic [31:0] data_pc_o,     // of the instruction whose access is requested

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
    output logic        cfu_takes_o,
    input  logic        cfu_ready_i,
    input  logic        cfu_answers_i,
    input  logic [31:0] cfu_answer_i,
`endif
    output logic [31:0] sp_o,
    output logic [31:0] ra_o
