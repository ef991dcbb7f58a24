    // registers: OBI 1.2, the answer a cycle after the request
    input             s_req,
    output            s_gnt,
    input      [11:0] s_addr,
    input             s_we,
    input      [31:0] s_wdata,
    output reg        s_rvalid,
    output reg [31:0] s_rdata,
    // end of ports
    assign write = s_req && s_we;
    assign waddr = s_addr;
    assign wdata = s_wdata;
    assign raddr = s_addr;
    assign s_gnt = 1'b1;
    always @(posedge clk) begin
        s_rvalid <= rst_n && s_req;
        s_rdata <= rdata;
    end
