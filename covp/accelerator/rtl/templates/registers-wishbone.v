    // registers: Wishbone B4, classic cycles, the answer a cycle later
    input             s_cyc_i,
    input             s_stb_i,
    input             s_we_i,
    input      [11:0] s_adr_i,
    input      [31:0] s_dat_i,
    output reg [31:0] s_dat_o,
    output reg        s_ack_o,
    // end of ports
    wire asks = s_cyc_i && s_stb_i && !s_ack_o;
    assign write = asks && s_we_i;
    assign waddr = s_adr_i;
    assign wdata = s_dat_i;
    assign raddr = s_adr_i;
    always @(posedge clk) begin
        s_ack_o <= rst_n && asks;
        s_dat_o <= rdata;
    end
