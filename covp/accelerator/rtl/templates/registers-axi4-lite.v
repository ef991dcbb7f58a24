    // registers: AXI4-Lite (Arm IHI 0022); a write is taken when address and data are there
    input             s_awvalid,
    output            s_awready,
    input      [11:0] s_awaddr,
    input             s_wvalid,
    output            s_wready,
    input      [31:0] s_wdata,
    output reg        s_bvalid,
    input             s_bready,
    output      [1:0] s_bresp,
    input             s_arvalid,
    output            s_arready,
    input      [11:0] s_araddr,
    output reg        s_rvalid,
    input             s_rready,
    output reg [31:0] s_rdata,
    output      [1:0] s_rresp,
    // end of ports
    assign write = s_awvalid && s_wvalid && !s_bvalid;
    assign waddr = s_awaddr;
    assign wdata = s_wdata;
    assign raddr = s_araddr;
    assign s_awready = write;
    assign s_wready = write;
    assign s_arready = !s_rvalid;
    assign s_bresp = 2'b00;
    assign s_rresp = 2'b00;
    always @(posedge clk) begin
        s_bvalid <= rst_n && (write || (s_bvalid && !s_bready));
        s_rvalid <= rst_n && ((s_arvalid && s_arready) || (s_rvalid && !s_rready));
        if (s_arready) s_rdata <= rdata;
    end
