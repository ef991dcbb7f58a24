    // memory: AXI4 (Arm IHI 0022), bursts of one beat; loads and stores are not under way together
    output            m_arvalid,
    input             m_arready,
    output     [31:0] m_araddr,
    output      [7:0] m_arlen,
    output      [2:0] m_arsize,
    output      [1:0] m_arburst,
    input             m_rvalid,
    output            m_rready,
    input      [31:0] m_rdata,
    input       [1:0] m_rresp,
    input             m_rlast,
    output            m_awvalid,
    input             m_awready,
    output     [31:0] m_awaddr,
    output      [7:0] m_awlen,
    output      [2:0] m_awsize,
    output      [1:0] m_awburst,
    output            m_wvalid,
    input             m_wready,
    output     [31:0] m_wdata,
    output      [3:0] m_wstrb,
    output            m_wlast,
    input             m_bvalid,
    output            m_bready,
    input       [1:0] m_bresp
    // end of ports
    reg  [3:0] loads, stores;     // that are under way
    reg        sent_aw, sent_w;   // of the store that is requested
    wire       takes_aw = m_awvalid && m_awready, takes_w = m_wvalid && m_wready;
    wire       loading = req && !we && stores == 0 && loads != 4'd8;
    wire       storing = req && we && loads == 0 && stores != 4'd8;
    wire       stored = storing && (sent_aw || takes_aw) && (sent_w || takes_w);

    assign m_arvalid = loading;
    assign m_araddr = addr;
    assign m_awaddr = addr;
    assign {m_arlen, m_awlen} = 16'd0;
    assign {m_arsize, m_awsize} = {3'd2, 3'd2};
    assign {m_arburst, m_awburst} = {2'b01, 2'b01};
    assign m_awvalid = storing && !sent_aw;
    assign m_wvalid = storing && !sent_w;
    assign m_wdata = wdata;
    assign m_wstrb = be;
    assign m_wlast = 1'b1;
    assign m_rready = 1'b1;
    assign m_bready = 1'b1;
    assign gnt = (loading && m_arready) || stored;
    assign rvalid = m_rvalid || m_bvalid;
    assign rdata = m_rdata;
    assign err = m_rvalid ? m_rresp[1] : m_bresp[1];
    always @(posedge clk) begin
        if (!rst_n) {loads, stores, sent_aw, sent_w} <= 0;
        else begin
            loads <= loads + {3'd0, loading && m_arready} - {3'd0, m_rvalid};
            stores <= stores + {3'd0, stored} - {3'd0, m_bvalid};
            sent_aw <= storing && !stored && (sent_aw || takes_aw);
            sent_w <= storing && !stored && (sent_w || takes_w);
        end
    end
