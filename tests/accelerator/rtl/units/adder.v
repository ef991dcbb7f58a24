// Adds words of 32 bits: registers of its own on APB, A loaded and the sum stored on OBI, B loaded on AHB-Lite.
module adder #(
    parameter PLUS = 0  // added to each sum
) (
    input             clk,
    input             rst_n,
    input             psel,
    input             penable,
    input             pwrite,
    input       [7:0] paddr,
    input      [31:0] pwdata,
    output reg [31:0] prdata,
    output            a_req,
    input             a_gnt,
    output     [31:0] a_addr,
    output            a_we,
    output     [31:0] a_wdata,
    input             a_rvalid,
    input      [31:0] a_rdata,
    output     [31:0] b_haddr,
    output      [1:0] b_htrans,
    output            b_hwrite,
    output      [2:0] b_hsize,
    output     [31:0] b_hwdata,
    input      [31:0] b_hrdata,
    input             b_hready,
    output reg        done,  // the interrupt: up until STATE is written
    output            works
);
    localparam IDLE = 0, LOAD = 1, STORE = 2, ANSWER = 3;
    reg [1:0] state;
    reg [31:0] a, b, target, left, sum_a, sum_b;
    reg a_asked, a_there, b_asked, b_there;
    assign works = state != IDLE;
    assign a_req = state == LOAD ? !a_asked : state == STORE;
    assign a_we = state == STORE;
    assign a_addr = a_we ? target : a;
    assign a_wdata = sum_a + sum_b + PLUS;
    assign b_htrans = state == LOAD && !b_asked ? 2'b10 : 2'b00;
    assign b_haddr = b;
    assign b_hwrite = 1'b0;
    assign b_hsize = 3'd2;
    assign b_hwdata = 32'd0;

    always @(*)
        case (paddr[4:2])
            0: prdata = a;
            1: prdata = b;
            2: prdata = target;
            3: prdata = left;
            default: prdata = {30'd0, done, works};
        endcase

    always @(posedge clk)
        if (!rst_n) begin
            state <= IDLE;
            done <= 0;
            {a, b, target, left} <= 0;
        end else begin
            if (psel && penable && pwrite)
                case (paddr[4:2])
                    0: a <= pwdata;
                    1: b <= pwdata;
                    2: target <= pwdata;
                    3: left <= pwdata;
                    default: begin
                        done <= 0;
                        if (pwdata[0] && left != 0) begin
                            state <= LOAD;
                            {a_asked, a_there, b_asked, b_there} <= 0;
                        end
                    end
                endcase
            case (state)
                LOAD: begin
                    if (a_req && a_gnt) a_asked <= 1;
                    if (a_rvalid) {a_there, sum_a} <= {1'b1, a_rdata};
                    if (b_htrans != 0 && b_hready) b_asked <= 1;
                    if (b_asked && !b_there && b_hready) {b_there, sum_b} <= {1'b1, b_hrdata};
                    if (a_there && b_there) state <= STORE;
                end
                STORE: if (a_gnt) state <= ANSWER;
                ANSWER: if (a_rvalid) begin
                    {a, b, target, left} <= {a + 32'd4, b + 32'd4, target + 32'd4, left - 32'd1};
                    {a_asked, a_there, b_asked, b_there} <= 0;
                    state <= left == 1 ? IDLE : LOAD;
                    done <= left == 1;
                end
                default: ;
            endcase
        end
endmodule
