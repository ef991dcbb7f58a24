// Copies N bytes in bursts of up to 16 beats of 64 bits, none across a border of 4 KiB.
module copier #(
    parameter BEATS = 16
) (
    input             aclk,
    input             aresetn,
    output            interrupt,
    input             s_awvalid,
    output            s_awready,
    input      [11:0] s_awaddr,
    input             s_wvalid,
    output            s_wready,
    input      [31:0] s_wdata,
    output            s_bvalid,
    input             s_bready,
    output      [1:0] s_bresp,
    input             s_arvalid,
    output            s_arready,
    input      [11:0] s_araddr,
    output            s_rvalid,
    input             s_rready,
    output     [31:0] s_rdata,
    output      [1:0] s_rresp,
    output            M_ARVALID,
    input             M_ARREADY,
    output     [31:0] M_ARADDR,
    output      [7:0] M_ARLEN,
    output      [2:0] M_ARSIZE,
    output      [1:0] M_ARBURST,
    input             M_RVALID,
    output            M_RREADY,
    input      [63:0] M_RDATA,
    input             M_RLAST,
    input       [1:0] M_RRESP,
    output            M_AWVALID,
    input             M_AWREADY,
    output     [31:0] M_AWADDR,
    output      [7:0] M_AWLEN,
    output      [2:0] M_AWSIZE,
    output      [1:0] M_AWBURST,
    output            M_WVALID,
    input             M_WREADY,
    output     [63:0] M_WDATA,
    output      [7:0] M_WSTRB,
    output            M_WLAST,
    input             M_BVALID,
    output            M_BREADY,
    input       [1:0] M_BRESP,
    input             test_mode
);
    wire        go;
    wire [31:0] N, INPUT, OUTPUT;
    reg         over;
    reg   [7:0] error;

    copier_registers registers (
        .clk(aclk), .rst_n(aresetn && !test_mode), .irq(interrupt),
        .s_awvalid(s_awvalid), .s_awready(s_awready), .s_awaddr(s_awaddr), .s_wvalid(s_wvalid),
        .s_wready(s_wready), .s_wdata(s_wdata), .s_bvalid(s_bvalid), .s_bready(s_bready),
        .s_bresp(s_bresp), .s_arvalid(s_arvalid), .s_arready(s_arready), .s_araddr(s_araddr),
        .s_rvalid(s_rvalid), .s_rready(s_rready), .s_rdata(s_rdata), .s_rresp(s_rresp),
        .fetches(), .fetch_req(), .fetch_addr(), .fetch_gnt(1'b0), .fetch_rvalid(1'b0),
        .fetch_rdata(32'd0), .fetch_err(1'b0),
        .go(go), .over(over), .error(error), .N(N), .INPUT(INPUT), .OUTPUT(OUTPUT)
    );

    localparam IDLE = 0, ASK = 1, LOAD = 2, ADDRESS = 3, STORE = 4, WAIT = 5;
    reg  [2:0]  state;
    reg  [31:0] from, to, left;
    reg  [4:0]  beat;
    reg         failed;
    reg  [63:0] buffer [0:BEATS - 1];

    // beats of the next burst: what is left, up to the border of both addresses
    wire [31:0] to_border_from = (32'd4096 - {20'd0, from[11:0]}) >> 3;
    wire [31:0] to_border_to = (32'd4096 - {20'd0, to[11:0]}) >> 3;
    wire [31:0] first = left >> 3 < BEATS ? left >> 3 : BEATS;
    wire [31:0] second = first < to_border_from ? first : to_border_from;
    wire [31:0] beats = second < to_border_to ? second : to_border_to;

    assign M_ARVALID = state == ASK;
    assign M_ARADDR = from;
    assign M_ARLEN = beats[7:0] - 8'd1;
    assign M_ARSIZE = 3'd3;
    assign M_ARBURST = 2'b01;
    assign M_RREADY = state == LOAD;
    assign M_AWVALID = state == ADDRESS;
    assign M_AWADDR = to;
    assign M_AWLEN = beats[7:0] - 8'd1;
    assign M_AWSIZE = 3'd3;
    assign M_AWBURST = 2'b01;
    assign M_WVALID = state == STORE;
    assign M_WDATA = buffer[beat[3:0]];
    assign M_WSTRB = 8'hff;
    assign M_WLAST = beat + 1 == beats[4:0];
    assign M_BREADY = state == WAIT;

    always @(posedge aclk) begin
        over <= 1'b0;
        if (!aresetn) state <= IDLE;
        else case (state)
            IDLE: if (go) begin
                {from, to, left} <= {INPUT, OUTPUT, N};
                failed <= 1'b0;
                state <= ASK;
            end
            ASK: if (M_ARREADY) begin
                beat <= 0;
                state <= LOAD;
            end
            LOAD: if (M_RVALID) begin
                buffer[beat[3:0]] <= M_RDATA;
                failed <= failed || M_RRESP[1];
                beat <= beat + 1;
                if (M_RLAST) begin
                    state <= ADDRESS;
                    if (failed || M_RRESP[1]) begin
                        {over, error} <= {1'b1, 8'd2};
                        state <= IDLE;
                    end
                end
            end
            ADDRESS: if (M_AWREADY) begin
                beat <= 0;
                state <= STORE;
            end
            STORE: if (M_WREADY) begin
                beat <= beat + 1;
                if (M_WLAST) state <= WAIT;
            end
            WAIT: if (M_BVALID) begin
                from <= from + 8 * beats;
                to <= to + 8 * beats;
                left <= left - 8 * beats;
                state <= ASK;
                if (left == 8 * beats || M_BRESP[1]) begin
                    {over, error} <= {1'b1, M_BRESP[1] ? 8'd2 : 8'd0};
                    state <= IDLE;
                end
            end
            default: ;
        endcase
    end
endmodule
